section("counters", "Counters", (box) => {
  const names = Object.keys(report.counters), rows = names.map((name) => {
    const meaning = data.terms[name];
    return el("tr", { "data-group": data.groups[name], "data-name": `${name} ${meaning ? meaning.title : ""}`.toLowerCase() }, el("td", {}, el("code", {}, name), why(name), meaning ? el("div", { class: "soft" }, meaning.title) : null),
      el("td", { class: "num" }, number(report.counters[name])), el("td", {}, meaning ? meaning.unit : ""), el("td", { class: "soft" }, report.provenance[name] || "unknown"));
  });
  const count = el("span", { class: "soft", role: "status" });
  const search = el("input", { type: "search", id: "counter-search", placeholder: "name or meaning", oninput: () => filter() });
  const zeros = el("input", { type: "checkbox", id: "counter-zeros", onchange: () => filter() });
  const head = () => el("thead", {}, el("tr", {}, ["Nsight Compute's name", "value", "unit", "known how"].map((text, column) => el("th", { class: column === 1 ? "num" : null, scope: "col" }, text))));
  const groups = [...new Set(rows.map((row) => row.dataset.group))].map((name) => {
    const mine = rows.filter((row) => row.dataset.group === name), told = el("span", { class: "soft" });
    const node = el("details", { class: "group" }, el("summary", {}, `${name} `, told), el("div", { class: "wide", tabindex: "0", role: "region", "aria-label": name }, el("table", {}, head(), el("tbody", {}, mine))));
    return { mine, told, node };
  });
  function filter() {
    let shown = 0;
    rows.forEach((row, index) => {
      row.hidden = !row.dataset.name.includes(search.value.trim().toLowerCase()) || (!zeros.checked && !report.counters[names[index]]);
      shown += !row.hidden;
    });
    count.textContent = `${shown} of ${names.length}`;
    for (const { mine, told, node } of groups) {
      const left = mine.filter((row) => !row.hidden).length;
      node.hidden = !left;
      told.textContent = String(left);
      if (search.value.trim()) node.open = true;
    }
  }
  box.append(el("div", { class: "tools" }, el("label", {}, "find", search), el("label", {}, zeros, "those that are 0 too"), count),
    ...groups.map((group) => group.node));
  filter();
}, "Under Nsight Compute's names. Exact ones were counted, as the hardware would; modelled and calibrated ones are predictions.", "provenance");

section("method", "How this was computed", (box) => {
  const sampling = report.sampling;
  const lines = [`Executed ${sampling.full ? "every block" : `${number(sampling.blocks_executed)} of ${number(sampling.blocks_total)} blocks`}: ${plural(sampling.executed_instructions, "warp instruction")}; timed on one SM ${number(sampling.timed_instructions)} of ${number(report.instructions.executed)}, by ${report.time.engine === "simpy" ? "SimPy" : "the native engine"}.`,
    ...new Set([...sampling.notes, ...report.notes])];
  box.append(el("ul", {}, lines.map((text) => el("li", {}, text))), el("h3", {}, "Not modelled"), el("ul", {}, report.not_modelled.map((text) => el("li", {}, text))));
  box.append(el("p", { class: "soft" }, `Arguments: ${report.launch.arguments.join(", ")}. With ${Object.entries(report.versions).map(([name, version]) => `${name} ${version}`).join(", ")}; GPU file ${String(report.gpu.sha256).slice(0, 12)}.`));
});
