section("memory", "Memory chart", (box) => {
  const names = { kernel: "Kernel", l1: "L1 cache", shared: "Shared memory", l2: "L2 cache", dram: "DRAM" };
  const chartData = data.memory, flows = chartData.flows;
  const between = (a, b) => flows.filter((flow) => (flow.source === a && flow.target === b) || (flow.source === b && flow.target === a));
  const has = (name) => flows.some((flow) => flow.source === name || flow.target === name);
  const note = {
    kernel: [`${short(report.instructions.executed)} warp`, "instructions"],
    l1: chartData.l1_hit_pct === null ? [] : [`hit rate ${percent(chartData.l1_hit_pct)}`],
    shared: chartData.conflicts ? [`${short(chartData.conflicts)} wavefronts`, "of conflicts"] : ["no conflicts"],
    l2: chartData.l2_hit_pct === null ? [] : [`hit rate ${percent(chartData.l2_hit_pct)}`],
    dram: [],
  };
  const texts = (flow, upper) => {
    const verb = flow.target === upper ? "loads" : "stores";
    const first = flow.what ? `${flow.what} ${verb}` : verb === "loads" ? "read" : "written";
    const second = [flow.requests ? `${short(flow.requests)} req` : null, sized(flow.moved_bytes)].filter(Boolean).join(", ");
    return [first, second, flow.wavefronts ? `${short(flow.wavefronts)} wavefronts` : null].filter(Boolean);
  };
  const most = Math.max(...flows.map((flow) => flow.moved_bytes), 1);
  const thick = (flow) => 1.5 + 5 * Math.sqrt(flow.moved_bytes / most);
  const node = (name, x, y, w, h) => {
    const lines = [svg("tspan", { class: "strong" }, names[name]), ...note[name].map((text) => svg("tspan", { class: "soft" }, text))];
    lines.forEach((line, index) => { line.setAttribute("x", x + w / 2); line.setAttribute("dy", index ? "1.35em" : "0"); });
    return [svg("rect", { x, y, width: w, height: h, rx: 6, fill: "var(--faint)", stroke: "var(--line)" }),
      svg("text", { x: x + w / 2, y: y + h / 2 - (lines.length - 1) * 8 + 4, "text-anchor": "middle" }, lines)];
  };
  const arrow = (x1, y1, x2, y2, flow) => {
    const size = 6 + thick(flow), angle = Math.atan2(y2 - y1, x2 - x1), tip = (turn) => [x2 - size * Math.cos(angle + turn), y2 - size * Math.sin(angle + turn)].join(",");
    return [svg("line", { x1, y1, x2: x2 - 0.7 * size * Math.cos(angle), y2: y2 - 0.7 * size * Math.sin(angle), stroke: "var(--c0)", "stroke-width": thick(flow) }),
      svg("polygon", { points: `${x2},${y2} ${tip(0.45)} ${tip(-0.45)}`, fill: "var(--c0)" })];
  };
  const label = (x, y, lines, anchor) => svg("text", { x, y, "text-anchor": anchor, class: "tiny" }, lines.map((text, index) => svg("tspan", { x, dy: index ? "1.2em" : "0" }, text)));
  const uppers = ["l1", "shared"].filter(has);

  function across(width) {
    const w = 118, gap = (width - 4 * w - 4) / 3, slot = 52, columns = [2, 2 + w + gap, 2 + 2 * (w + gap), 2 + 3 * (w + gap)];
    const parts = [], heights = {};
    let y = 4;
    for (const name of uppers) {
      heights[name] = { y, h: Math.max(70, slot * between("kernel", name).length) };
      y += heights[name].h + 22;
    }
    const height = Math.max(y - 18, 80);
    parts.push(node("kernel", columns[0], 4, w, height - 8));
    for (const name of uppers) parts.push(node(name, columns[1], heights[name].y, w, heights[name].h));
    const low = heights.l1 || { y: 4, h: 100 };
    if (has("l2")) parts.push(node("l2", columns[2], low.y, w, low.h));
    if (has("dram")) parts.push(node("dram", columns[3], low.y, w, low.h));
    const drawn = (a, b, column, place) => between(a, b).forEach((flow, index, all) => {
      const at = place.y + place.h * (index + 0.5) / all.length + 8, x1 = columns[column] + w + 4, x2 = columns[column + 1] - 4;
      const ends = flow.source === a ? [x1, x2] : [x2, x1];
      parts.push(arrow(ends[0], at, ends[1], at, flow));
      const lines = texts(flow, a);
      parts.push(label((x1 + x2) / 2, at - 7 - 12 * (lines.length - 1), lines, "middle"));
    });
    for (const name of uppers) drawn("kernel", name, 0, heights[name]);
    drawn("l1", "l2", 1, low);
    drawn("l2", "dram", 2, low);
    return svg("svg", { width, height: height + 4, role: "img", "aria-label": "Memory chart" }, parts);
  }
  function down(room) {
    const arrows = uppers.map((name) => between("kernel", name).length), most = arrows.reduce((a, b) => a + b, 0);
    const width = Math.max(room, 84 * most + 12), gap = 92, h = 62, parts = [];
    // L1 and shared memory share the width in proportion to their numbers of arrows, which need room for their texts.
    const share = (name) => (uppers.includes(name) ? (width - 4 - 10 * (uppers.length - 1)) * arrows[uppers.indexOf(name)] / most : 0);
    const l1 = share("l1"), right = l1 ? l1 + 12 : 2, rows = [2, 2 + h + gap, 2 + 2 * (h + gap), 2 + 3 * (h + gap)];
    const place = { kernel: [2, rows[0], width - 4], l1: [2, rows[1], l1], shared: [right, rows[1], share("shared")], l2: [2, rows[2], l1], dram: [2, rows[3], l1] };
    for (const [name, [x, y, w]] of Object.entries(place)) if (has(name)) parts.push(node(name, x, y, w, h));
    const drawn = (a, b) => between(a, b).forEach((flow, index, all) => {
      const [x, , w] = place[b], step = w / all.length, at = x + step * index + 7, y1 = place[a][1] + h + 3, y2 = place[b][1] - 3;
      const ends = flow.source === a ? [y1, y2] : [y2, y1];
      parts.push(arrow(at, ends[0], at, ends[1], flow));
      const lines = texts(flow, a).flatMap((text) => text.replace("wavefronts", "wavefr.").split(", "));
      parts.push(label(at + 8, (y1 + y2) / 2 - 6 * (lines.length - 1) + 3, lines, "start"));
    });
    uppers.forEach((name) => drawn("kernel", name));
    drawn("l1", "l2");
    drawn("l2", "dram");
    return svg("svg", { width, height: (has("dram") ? rows[3] : has("l2") ? rows[2] : rows[1]) + h + 4, role: "img", "aria-label": "Memory chart" }, parts);
  }
  if (!flows.length) return box.append(el("p", {}, "The kernel accessed no memory."));
  box.append(chart("Memory chart", (width) => (width >= 800 ? across(width) : down(width))).frame);
  const rows = flows.map((flow) => [`${names[flow.source]} to ${names[flow.target]}`, flow.what, flow.requests ? number(flow.requests) : "", sized(flow.moved_bytes), flow.wavefronts ? number(flow.wavefronts) : ""]);
  box.append(el("details", {}, el("summary", {}, "The same as a table"), table(["from, to", "what", "requests", "moved", "wavefronts"], rows, [2, 3, 4], "Memory flows")));
  const counters = ["l1tex__t_sector_hit_rate.pct", "lts__t_sector_hit_rate.pct"].filter((name) => name in data.terms);
  if (counters.length) box.append(el("p", { class: "soft" }, "Hit rates: ", counters.map((name, index) => [index ? ", " : "", el("code", {}, name), why(name, below)])));
}, null, "sector");
