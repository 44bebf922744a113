section("global", data.samples.some((sample) => sample.space === "local") ? "A warp's global or local access" : "A warp's global access", (box) => {
  const samples = data.samples.filter((sample) => sample.space !== "shared");
  if (!samples.length) return box.append(el("p", {}, "No instruction accesses global or local memory."));
  const excess = (one) => one.representative.sectors / Math.max(1, one.representative.ideal);
  samples.sort((a, b) => excess(b) - excess(a) || b.representative.wavefronts - a.representative.wavefronts || a.index - b.index);
  let sample = samples[0], access = sample.representative, lane = 0;
  const says = readout(), summary = el("p");
  says.id = "lane-readout";
  summary.id = "lane-summary";
  const drawing = steered("Lanes and the sectors they fall in; left and right choose a lane", (width) => {
    const at = list(access.sector_at), of = list(access.sector), offsets = list(access.offsets), parts = [];
    const size = width / LANES, top = 34, bottom = 150;
    // Sectors that are not neighbours in memory have a gap between them.
    const gaps = at.map((offset, index) => (index && offset !== at[index - 1] + 32 ? 1 : 0)), places = [];
    const unit = width / (at.length + 0.35 * gaps.reduce((a, b) => a + b, 0));
    const wide = Math.min(unit, 90);
    const total = wide * (at.length + 0.35 * gaps.reduce((a, b) => a + b, 0));
    let x = (width - total) / 2;
    gaps.forEach((gap) => { x += 0.35 * wide * gap; places.push(x); x += wide; });
    const used = at.map(() => new Set());
    offsets.forEach((offset, each) => { if (offset !== null) for (let b = 0; b < sample.width; b++) used[of[each]].add((offset + b) % 32); });
    for (let each = 0; each < LANES; each++) {
      if (offsets[each] === null) continue;
      const s = of[each], chosen = each === lane;
      const target = places[s] + ((offsets[each] % 32) + sample.width / 2) / 32 * (wide - 2);
      parts.push(svg("line", { x1: (each + 0.5) * size, y1: top, x2: target, y2: bottom, stroke: chosen ? "var(--c1)" : "var(--c0)", "stroke-width": chosen ? 2.5 : 1, "stroke-opacity": chosen ? 1 : 0.45 }));
    }
    for (let each = 0; each < LANES; each++) {
      const on = offsets[each] !== null;
      parts.push(svg("rect", { x: each * size + 0.5, y: 14, width: size - 1, height: 20, rx: 2, fill: each === lane ? "var(--c1)" : on ? "var(--c0)" : "var(--faint)", stroke: "var(--line)", "data-lane": each }));
      if (each % 4 === 0 || each === 31) parts.push(svg("text", { x: (each + 0.5) * size, y: 10, "text-anchor": "middle", class: "soft tiny" }, String(each)));
    }
    at.forEach((offset, s) => {
      parts.push(svg("rect", { x: places[s], y: bottom, width: wide - 2, height: 22, fill: "var(--faint)", stroke: "var(--line)" }));
      for (const byte of used[s]) parts.push(svg("rect", { x: places[s] + byte / 32 * (wide - 2), y: bottom, width: (wide - 2) / 32 + 0.3, height: 22, fill: "var(--c2)" }));
      if (of[lane] === s && offsets[lane] !== null) parts.push(svg("rect", { x: places[s], y: bottom, width: wide - 2, height: 22, fill: "none", stroke: "var(--c1)", "stroke-width": 2.5 }));
      if (wide > 44) parts.push(svg("text", { x: places[s] + wide / 2, y: bottom + 36, "text-anchor": "middle", class: "soft tiny" }, `+${number(offset)}`));
    });
    parts.push(svg("text", { x: 0, y: bottom + 52, class: "soft tiny" }, "sectors of 32 bytes; green: bytes asked for"));
    return svg("svg", { width, height: bottom + 58, onclick: (event) => {
      const hit = event.target.getAttribute("data-lane");
      if (hit !== null) choose(Number(hit));
    } }, parts);
  }, (dx, dy) => choose(lane + dx + dy), 320, (end) => choose(end ? 31 : 0));
  function choose(next) {
    lane = clamp(next, 0, LANES - 1);
    const offset = list(access.offsets)[lane], element = list(access.elements)[lane];
    const what = element === null || element === undefined ? "" : `${named(arrays.get(access.argument), access.first + element)}, `;
    says.textContent = offset === null ? `Lane ${lane} is inactive.` : `Lane ${lane}: ${what}address 0x${(access.base + offset).toString(16)}, sector ${list(access.sector)[lane] + 1} of ${access.sectors}.`;
    drawing.redraw();
  }
  function pick() {
    const active = list(access.offsets).filter((offset) => offset !== null).length;
    const good = access.sectors <= access.ideal;
    summary.replaceChildren(el("b", { class: good ? "good" : "bad" }, plural(access.sectors, "sector")), ` for ${plural(active, "lane")} of ${plural(sample.width, "byte")}; ${number(access.ideal)} would do if the bytes lay side by side. `
      + `Block ${access.block}, warp ${access.warp}, access ${access.execution + 1} of this instruction; ${plural(access.wavefronts, "wavefront")} of the data stage.`);
    choose(lane);
  }
  const tools = chosenSample(samples, (one, which) => { sample = one; access = which; pick(); }, "global");
  box.append(tools, summary, drawing.frame, says);
  pick();
}, "Above the 32 lanes, below the 32-byte sectors that the request touches: L1 and L2 move whole sectors, whatever part of them is asked for.", "coalescing");

// The controls that choose an instruction, and its usual or its worst access.
function chosenSample(samples, onchange, name) {
  let sample = samples[0];
  const which = switcher("Which access", ["usual", "worst"], (index) => onchange(sample, index && sample.worst ? sample.worst : sample.representative));
  const update = () => { which.node.hidden = !sample.worst; which.node.style.setProperty("display", sample.worst ? "" : "none"); };
  const box = chooser("instruction", samples.map(describe), (index) => { sample = samples[index]; update(); which.press(0); }, `${name}-instruction`);
  update();
  return el("div", { class: "tools" }, box.node, which.node);
}
