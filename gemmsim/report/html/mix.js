section("mix", "Instruction mix", (box) => {
  const total = report.instructions.executed, share = (count) => percent(100 * count / total);
  if (!total) return box.append(el("p", {}, "No instruction was executed."));
  const kinds = Object.entries(report.instructions.by_kind);
  box.append(table(["class", "warp instructions", "share", ""], kinds.map(([name, count]) => [name, number(count), share(count), bar(count / total)]), [1, 2], "Instruction mix"));
  box.querySelectorAll("td:nth-child(4)").forEach((cell) => cell.classList.add("track"));
  const loop = report.k_loop;
  if (loop) box.append(el("p", {}, `Loop over K: instructions ${loop.start} to ${loop.stop - 1}; multiply-adds are ${percent(100 * loop.product_share, 0)} of the ${number(loop.instructions)} issued there.`));
  const opcodes = Object.entries(report.instructions.by_mnemonic);
  const rows = opcodes.map(([name, count]) => [el("code", {}, name), number(count), share(count)]);
  box.append(el("details", { class: "group" }, el("summary", {}, "By opcode ", el("span", { class: "soft" }, plural(opcodes.length, "opcode"))), table(["opcode", "warp instructions", "share"], rows, [1, 2], "Instructions by opcode")));
}, null, "instruction mix");
