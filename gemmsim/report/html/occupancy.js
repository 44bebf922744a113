section("occupancy", "Occupancy", (box) => {
  const occupancy = report.occupancy;
  const limits = [["block slots", "blocks", occupancy.limit_blocks], ["warp slots", "warps", occupancy.limit_warps],
    [`registers (${report.kernel.registers} a thread)`, "registers", occupancy.limit_registers],
    [`shared memory (${number(occupancy.allocated_shared_bytes)} bytes a block)`, "shared_mem", occupancy.limit_shared_mem]];
  box.append(el("p", {}, `${plural(occupancy.blocks_per_sm, "block")} and ${plural(occupancy.warps_per_sm, "warp")} fit an SM: ${percent(occupancy.theoretical_pct, 0)} of its ${data.gpu.max_warps} warps. `
    + `Achieved ${percent(occupancy.achieved_pct)}. Shared memory is configured to ${number(occupancy.carveout_bytes / 1024)} of ${number(data.gpu.unified_bytes / 1024)} KiB.`));
  const top = Math.max(...limits.map(([, , limit]) => limit));
  box.append(table(["blocks an SM by", "", "", ""], limits.map(([label, name, limit]) => {
    const binds = occupancy.limiters.includes(name);
    return [[label, why(`launch__occupancy_limit_${name}`)], number(limit), bar(limit / top, binds ? "var(--c1)" : null), binds ? "limits" : ""];
  }), [1], "Limits of occupancy"));
  box.querySelectorAll("td:nth-child(3)").forEach((cell) => cell.classList.add("track"));
  box.append(el("ul", { id: "cliffs" }, data.cliffs.sentences.map((text) => el("li", {}, text))));

  const labels = { registers: "registers a thread", shared_bytes: "bytes of shared memory a block", threads: "threads a block" };
  let stairs = data.cliffs.stairs[0], at = stairs.value;
  const says = readout();
  says.id = "stairs-readout";
  const slider = el("input", { type: "range", id: "stairs-slider", "aria-label": "value", oninput: () => show(Number(slider.value)) });
  const found = (value) => stairs.steps.find((step) => value <= step.last) || stairs.steps[stairs.steps.length - 1];
  const drawing = chart("Blocks that fit an SM, by resource", (width) => {
    const height = 210, left = 40, right = 10, top = 22, bottom = 36, parts = [];
    const last = stairs.steps[stairs.steps.length - 1].last;
    const x = (value) => left + value / last * (width - left - right), y = (warps) => height - bottom - warps / data.gpu.max_warps * (height - top - bottom);
    for (const share of [0, 0.25, 0.5, 0.75, 1]) {
      const warps = share * data.gpu.max_warps;
      parts.push(svg("line", { x1: left, x2: width - right, y1: y(warps), y2: y(warps), stroke: "var(--faint)" }), svg("text", { x: left - 6, y: y(warps) + 4, "text-anchor": "end", class: "soft" }, String(warps)));
    }
    parts.push(svg("text", { x: 4, y: height - 6, class: "soft" }, "up: warps an SM"), svg("text", { x: width - right, y: height - 6, "text-anchor": "end", class: "soft" }, labels[stairs.resource]));
    for (let tick = 0; tick <= 4; tick++) parts.push(svg("text", { x: x(last * tick / 4), y: height - bottom + 15, "text-anchor": tick === 4 ? "end" : "middle", class: "soft" }, last > 9999 ? short(last * tick / 4) : number(Math.round(last * tick / 4))));
    const points = stairs.steps.flatMap((step, index) => [`${x(index ? stairs.steps[index - 1].last : 0)},${y(step.warps)}`, `${x(step.last)},${y(step.warps)}`]);
    parts.push(svg("polyline", { points: points.join(" "), fill: "none", stroke: "var(--c0)", "stroke-width": 2.5 }));
    const mark = (value, paint, text) => [svg("line", { x1: x(value), x2: x(value), y1: top, y2: height - bottom, stroke: paint, "stroke-dasharray": "4 3" }), svg("circle", { cx: x(value), cy: y(found(value).warps), r: 5, fill: paint }),
      text ? svg("text", { x: clamp(x(value), left + 20, width - 70), y: top - 4, "text-anchor": "middle" }, text) : null];
    parts.push(mark(stairs.value, "var(--c1)", "this kernel"));
    if (at !== stairs.value) parts.push(mark(at, "var(--c2)"));
    return svg("svg", { width, height, role: "img", "aria-label": `Warps an SM by ${labels[stairs.resource]}` }, parts);
  });
  function show(value) {
    at = value;
    const step = found(value), warps = `${plural(step.warps, "warp")}, ${percent(100 * step.warps / data.gpu.max_warps, 0)}`;
    const unit = value === 1 ? labels[stairs.resource].replace(/s /, " ") : labels[stairs.resource];
    says.textContent = `${number(value)} ${unit}${value === stairs.value ? " (this kernel)" : ""}: ${step.blocks ? `${plural(step.blocks, "block")} an SM, ${warps}` : "no block fits"}.`;
    drawing.redraw();
  }
  const pick = (index) => {
    stairs = data.cliffs.stairs[index];
    const last = stairs.steps[stairs.steps.length - 1].last;
    slider.min = stairs.resource === "shared_bytes" ? 0 : 1;
    slider.max = last;
    slider.step = 1;
    slider.value = stairs.value;
    show(stairs.value);
  };
  const buttons = switcher("Resource", data.cliffs.stairs.map((one) => labels[one.resource]), pick);
  box.append(el("h3", {}, "Cliffs"), el("div", { class: "tools" }, buttons.node), drawing.frame, el("div", { class: "tools" }, el("label", { css: { flex: "1 1 100%" } }, "try", slider)), says);
  pick(0);
}, null, "occupancy");
