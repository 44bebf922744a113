section("stalls", "Where warps wait", (box) => {
  const all = Object.entries(report.stalls).filter(([, held]) => held > 0).sort((a, b) => b[1] - a[1]);
  const total = all.reduce((sum, [, held]) => sum + held, 0);
  if (!total) return box.append(el("p", {}, "No warp cycles were modelled."));
  box.append(el("p", {}, `${number(total, 3)} cycles a warp for each instruction it issues; "selected" is the one in which it does.`));
  box.append(table(["reason", "cycles", "share", ""], all.map(([reason, held]) =>
    [term(reason), held.toFixed(2), percent(100 * held / total), bar(held / total, reason === "selected" ? "var(--c2)" : "var(--c1)")]), [1, 2], "Stall reasons"));
  box.querySelectorAll("td:nth-child(4)").forEach((cell) => cell.classList.add("track"));
}, null, "stall");
