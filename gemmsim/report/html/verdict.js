section("verdict", "Verdict", (box) => {
  const time = report.time, line = report.roofline, occupancy = report.occupancy, sampling = report.sampling;
  const card = (value, label, name) => el("div", {}, el("b", {}, value), el("span", {}, label, name ? why(name) : null));
  const { m, n, k } = report.kernel, flops = line.flops && m ? 2 * m * n * k : line.flops;
  const speed = flops ? `${short(flops / time.us * 1e6)}FLOP/s` : "-";
  box.append(el("div", { class: "cards" },
    card(`${number(time.us)} us`, `predicted, ${number(time.launch_overhead_us)} us of it launch overhead`, "gpu__time_duration.sum"),
    card(speed, line.percent_of_attainable === null ? "operations unknown" : `${line.percent_of_attainable.toFixed(0)} % of what the roofline allows`),
    card(percent(occupancy.achieved_pct), `occupancy achieved, ${percent(occupancy.theoretical_pct, 0)} possible`, "sm__warps_active.avg.pct_of_peak_sustained_active"),
    card(report.verified.ok === null ? "not checked" : report.verified.ok ? "the result is right" : "the result is wrong", report.verified.text)));
  const dims = (three) => three.slice(0, three[2] === 1 ? 2 : 3).join(" x ");
  const left = sampling.full ? "every block executed" : `${number(sampling.blocks_executed)} of ${number(sampling.blocks_total)} blocks executed`;
  box.append(el("p", { class: "soft" }, `${report.gpu.title} (${report.gpu.arch}), grid ${dims(report.launch.grid)}, block ${dims(report.launch.block)}, `
    + `${number(time.cycles)} cycles at ${number(time.sm_clock_hz / 1e9)} GHz; ${left}. Predicted, not measured.`));
  if (report.findings.length) box.append(el("h3", { class: "bad" }, "Problems found while executing"), el("ul", {}, report.findings.map((text) => el("li", {}, text))));
  if (report.advice.length) {
    box.append(el("h3", {}, "What to change"), el("ul", { class: "advice" }, report.advice.map((one) =>
      el("li", {}, el("b", {}, linked(one.title)), [one.evidence, one.change, one.gain].filter(Boolean).map((text) => el("div", {}, linked(text)))))));
  }
  box.append(el("h3", {}, "How busy each unit is"));
  box.append(table(["unit", "of peak", "", ""], data.busy.filter((use) => use.share_pct >= 1).map((use) =>
    [use.unit, percent(use.share_pct), bar(use.share_pct / 100), el("span", { class: "soft" }, use.detail)]), [1], "How busy each unit is"));
  box.querySelectorAll("td:nth-child(3)").forEach((cell) => cell.classList.add("track"));
}, null, "bottleneck");
