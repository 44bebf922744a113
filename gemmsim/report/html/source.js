section("source", "Source and machine code", (box) => {
  const scale = 60, top = Math.max(...data.source.flatMap((file) => file.lines.map((line) => line.stall_share)), 1e-9);
  const cell = (value) => el("td", { class: "num" }, value ? short(value) : "");
  const head = ["line", "source", "executed", "live", "sectors", "wavefronts", "conflicts", "warps wait", "mostly for"];
  const seen = (share) => share >= 5e-4;
  const wait = (share, reason) => [
    el("td", { class: "num" }, seen(share) ? [el("span", { class: "heat", css: { width: `${Math.max(1, Math.round(scale * share))}px` } }), ` ${(100 * share).toFixed(1)} %`] : ""),
    el("td", { class: "soft reason" }, seen(share) ? reason : "")];

  function machine(indices) {
    return indices.filter((index) => code.has(index)).map((index) => {
      const [, text, executed, live = 0, share = 0, stall = "", requests = 0, sectors = 0, wavefronts = 0, conflicts = 0] = code.get(index);
      const title = `executed ${plural(executed, "time")} by a warp${requests ? `, ${plural(requests, "request")}` : ""}`;
      return el("tr", { class: executed ? "sass" : "sass never" }, el("td", { class: "num soft mono" }, String(index)), el("td", { class: "text mono", title }, text),
        cell(executed), cell(live), cell(sectors), cell(wavefronts), cell(conflicts), wait(share, stall));
    });
  }
  const toggles = [];
  for (const file of data.source) {
    const of = new Map(file.lines.map((line) => [line.line, line])), body = el("tbody");
    const rows = file.text.length ? file.text.map((text, index) => [file.first + index, text]) : file.lines.map((line) => [line.line, line.line ? "" : "machine code without a source line"]);
    const first = file === data.source[0];
    for (const [at, text] of rows) {
      const line = of.get(at);
      const row = el("tr", { class: line && line.stall_share > top / 2 ? "hot" : null, id: first && line && at ? `line-${at}` : null });
      body.append(row);
      if (!line) {
        row.append(el("td", { class: "num soft mono" }, String(at)), el("td", { class: "text mono soft", colspan: 8 }, text));
        continue;
      }
      let shown = [];
      const known = line.instructions.some((index) => code.has(index));
      const button = el("button", { type: "button", class: "open mono", "aria-expanded": "false", "aria-label": `Machine code of ${at ? `line ${at}` : "no line"}`, disabled: !known }, `▸ ${at || ""}`);
      const toggle = (open) => {
        if (open === Boolean(shown.length)) return;
        shown.forEach((each) => each.remove());
        shown = open ? machine(line.instructions) : [];
        row.after(...shown);
        button.textContent = `${open ? "▾" : "▸"} ${at || ""}`;
        button.setAttribute("aria-expanded", String(open));
      };
      if (known) {
        row.classList.add("opens");
        row.addEventListener("click", () => { if (!String(getSelection())) toggle(!shown.length); });
      }
      toggles.push(toggle);
      row.append(el("td", { class: "num" }, button), el("td", { class: "text mono" }, text), cell(line.executed), cell(line.live), cell(line.sectors), cell(line.wavefronts), cell(line.conflicts), ...wait(line.stall_share, line.stall));
    }
    if (file.file) box.append(el("h3", {}, el("code", {}, file.file)));
    box.append(el("div", { class: "wide", tabindex: "0", role: "region", "aria-label": file.file || "machine code" }, el("table", { class: "source" },
      el("thead", {}, el("tr", {}, head.map((text, column) => text ? el("th", { scope: "col", class: column === 1 || column === 8 ? null : "num" }, text) : el("td")))), body)));
  }
  let all = false;
  const every = el("button", { type: "button", id: "sass-all", "aria-pressed": "false", onclick: () => {
    all = !all;
    toggles.forEach((toggle) => toggle(all));
    every.setAttribute("aria-pressed", String(all));
  } }, "All machine code");
  box.querySelector("h2").after(el("div", { class: "tools" }, every, el("span", { class: "soft" }, "Click or tap a line: it opens to the instructions that the compiler made of it.")), glossary("sector", "wavefront", "bank conflict"));
  if (data.code_left_out) box.append(el("p", { class: "soft" }, `${plural(data.code_left_out, "instruction is", "instructions are")} left out to keep this file small.`));
}, "How often warps executed a line's instructions, how many registers of a thread are live there at most, its sectors, wavefronts and conflicts are of the whole launch; the share of warp cycles spent waiting at a line stands at the right, with the reason that most of them had.", "SASS");
