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
  const multicast = (flow) => flow.received_bytes > 1.001 * flow.moved_bytes;
  const shares = (flow) => [multicast(flow) ? `multicast: ${sized(flow.received_bytes)} arrive` : null, flow.merged_bytes ? `${sized(flow.merged_bytes)} merged` : null];
  const texts = (flow, upper) => {
    const verb = flow.target === upper ? "loads" : "stores";
    const first = flow.what === "cp.async" ? "cp.async" : flow.what ? `${flow.what} ${verb}` : verb === "loads" ? "read" : "written";
    const second = [flow.requests ? `${short(flow.requests)} req` : null, sized(flow.moved_bytes)].filter(Boolean).join(", ");
    const third = [flow.wavefronts ? `${short(flow.wavefronts)} wavefronts` : null, flow.share_pct >= 0.05 ? `${flow.share_pct.toFixed(1)} % of peak` : null].filter(Boolean).join(", ");
    return [first, second, third, ...shares(flow)].filter(Boolean);
  };
  const most = Math.max(...flows.map((flow) => flow.moved_bytes), 1);
  const thick = (flow) => 1.5 + 5 * Math.sqrt(flow.moved_bytes / most);
  const node = (name, x, y, w, h) => {
    const lines = [svg("tspan", { class: "strong" }, name === "shared" && w < 112 ? "Shared" : names[name]), ...note[name].map((text) => svg("tspan", { class: "soft" }, text))];
    lines.forEach((line, index) => { line.setAttribute("x", x + w / 2); line.setAttribute("dy", index ? "1.35em" : "0"); });
    return [svg("rect", { x, y, width: w, height: h, rx: 6, fill: "var(--faint)", stroke: "var(--line)" }),
      svg("text", { x: x + w / 2, y: y + h / 2 - (lines.length - 1) * 8 + 4, "text-anchor": "middle" }, lines)];
  };
  const arrow = (x1, y1, x2, y2, flow) => {
    const size = 6 + thick(flow), angle = Math.atan2(y2 - y1, x2 - x1), tip = (turn) => [x2 - size * Math.cos(angle + turn), y2 - size * Math.sin(angle + turn)].join(",");
    return [svg("line", { x1, y1, x2: x2 - 0.7 * size * Math.cos(angle), y2: y2 - 0.7 * size * Math.sin(angle), stroke: "var(--c0)", "stroke-width": thick(flow) }),
      svg("polygon", { points: `${x2},${y2} ${tip(0.45)} ${tip(-0.45)}`, fill: "var(--c0)" })];
  };
  // An arrow; one of multicast divides in two before it ends, as what is sent once arrives several times.
  const drawnArrow = (x1, y1, x2, y2, flow) => {
    if (!multicast(flow)) return arrow(x1, y1, x2, y2, flow);
    const flat = y1 === y2, xm = (x1 + 2 * x2) / 3, ym = (y1 + 2 * y2) / 3;
    return [svg("line", { x1, y1, x2: xm, y2: ym, stroke: "var(--c0)", "stroke-width": thick(flow), "data-sent": "once" }),
      ...[-9, 9].flatMap((side) => arrow(xm, ym, flat ? x2 : x2 + side, flat ? y2 + side : y2, flow))];
  };
  const label = (x, y, lines, anchor) => svg("text", { x, y, "text-anchor": anchor, class: "tiny" }, lines.map((text, index) => svg("tspan", { x, dy: index ? "1.2em" : "0" }, text)));
  const uppers = ["l1", "shared"].filter(has);

  function across(width) {
    const w = 118, gap = (width - 4 * w - 4) / 3, slot = 52, columns = [2, 2 + w + gap, 2 + 2 * (w + gap), 2 + 3 * (w + gap)];
    const parts = [], heights = {};
    let y = 4;
    const between2 = between("l1", "shared"), apart = between2.length ? 46 : 22;
    for (const name of uppers) {
      heights[name] = { y, h: Math.max(70, slot * between("kernel", name).length, (slot + 22) * between(name, "l2").length) };
      y += heights[name].h + apart;
    }
    y += 22 - apart;
    const height = Math.max(y - 18, 80);
    parts.push(node("kernel", columns[0], 4, w, height - 8));
    for (const name of uppers) parts.push(node(name, columns[1], heights[name].y, w, heights[name].h));
    const tma = between("shared", "l2").length > 0, first = heights.l1 || heights.shared || { y: 4, h: 100 };
    const low = tma ? { y: first.y, h: heights.shared.y + heights.shared.h - first.y } : first;
    if (has("l2")) parts.push(node("l2", columns[2], low.y, w, low.h));
    if (has("dram")) parts.push(node("dram", columns[3], low.y, w, low.h));
    const drawn = (a, b, column, place) => between(a, b).forEach((flow, index, all) => {
      const at = place.y + place.h * (index + 0.5) / all.length + 8, x1 = columns[column] + w + 4, x2 = columns[column + 1] - 4;
      const ends = flow.source === a ? [x1, x2] : [x2, x1];
      parts.push(drawnArrow(ends[0], at, ends[1], at, flow));
      const lines = texts(flow, a), told = lines.slice(0, 3), more = lines.slice(3);
      parts.push(label((x1 + x2) / 2, at - (multicast(flow) ? 14 : 7) - 12 * (told.length - 1), told, "middle"));
      if (more.length) parts.push(label((x1 + x2) / 2, at + 22, more, "middle"));
    });
    for (const name of uppers) drawn("kernel", name, 0, heights[name]);
    if (heights.l1) drawn("l1", "l2", 1, heights.l1);
    if (tma) drawn("shared", "l2", 1, heights.shared);
    drawn("l2", "dram", 2, low);
    for (const flow of between2) {
      const x = columns[1] + 14, from = heights.l1.y + heights.l1.h + 3, to = heights.shared.y - 3;
      parts.push(arrow(x, from, x, to, flow), label(x + 12, (from + to) / 2 - 3, texts(flow, "l1"), "start"));
    }
    return svg("svg", { width, height: height + 4, role: "img", "aria-label": "Memory chart" }, parts);
  }
  function down(room) {
    const copies = between("l1", "shared"), tma = between("shared", "l2").length > 0, aside = copies.length ? 92 : 10;
    const arrows = uppers.map((name) => Math.max(between("kernel", name).length, between(name, "l2").length * (between(name, "l2").some(multicast) ? 1.45 : 1), 1.4)), most = arrows.reduce((a, b) => a + b, 0);
    const width = Math.max(room, 84 * most + 2 + aside), gap = 92, h = 62, parts = [];
    // L1 and shared memory share the width in proportion to their numbers of arrows, which need room for their texts.
    const share = (name) => (uppers.includes(name) ? (width - 4 - aside * (uppers.length - 1)) * arrows[uppers.indexOf(name)] / most : 0);
    const l1 = share("l1"), right = l1 ? l1 + 2 + aside : 2, under = tma ? width - 4 : l1, rows = [2, 2 + h + gap, 2 + 2 * (h + gap), 2 + 3 * (h + gap)];
    const place = { kernel: [2, rows[0], width - 4], l1: [2, rows[1], l1], shared: [right, rows[1], share("shared")], l2: [2, rows[2], under], dram: [2, rows[3], under] };
    for (const [name, [x, y, w]] of Object.entries(place)) if (has(name)) parts.push(node(name, x, y, w, h));
    const drawn = (a, b, along = b) => between(a, b).forEach((flow, index, all) => {
      const [x, , w] = place[along], step = w / all.length, at = x + step * index + 7, y1 = place[a][1] + h + 3, y2 = place[b][1] - 3;
      const ends = flow.source === a ? [y1, y2] : [y2, y1];
      parts.push(drawnArrow(at + (multicast(flow) ? 9 : 0), ends[0], at + (multicast(flow) ? 9 : 0), ends[1], flow));
      const lines = texts(flow, a).flatMap((text) => text.replace("wavefronts", "wavefr.").split(/, |: /));
      parts.push(label(at + (multicast(flow) ? 24 : 8), (y1 + y2) / 2 - 6 * (lines.length - 1) + 3, lines, "start"));
    });
    uppers.forEach((name) => drawn("kernel", name));
    drawn("l1", "l2", "l1");
    drawn("shared", "l2", "shared");
    drawn("l2", "dram");
    for (const flow of copies) {
      const y = rows[1] + h - 12;
      parts.push(arrow(l1 + 4, y, right - 3, y, flow), label(l1 + 8, rows[1] + 12, texts(flow, "l1").flatMap((text) => text.split(", ")), "start"));
    }
    return svg("svg", { width, height: (has("dram") ? rows[3] : has("l2") ? rows[2] : rows[1]) + h + 4, role: "img", "aria-label": "Memory chart" }, parts);
  }
  if (!flows.length) return box.append(el("p", {}, "The kernel accessed no memory."));
  box.append(chart("Memory chart", (width) => (width >= 800 ? across(width) : down(width))).frame);
  const rows = flows.map((flow) => [`${names[flow.source]} to ${names[flow.target]}`, flow.what, flow.requests ? number(flow.requests) : "", sized(flow.moved_bytes) + (multicast(flow) ? ` (${sized(flow.received_bytes)} arrive)` : ""), flow.wavefronts ? number(flow.wavefronts) : "", flow.share_pct === null ? "" : percent(flow.share_pct)]);
  box.append(el("details", {}, el("summary", {}, "The same as a table"), table(["from, to", "what", "requests", "moved", "wavefronts", "of peak"], rows, [2, 3, 4, 5], "Memory flows")));
  const counters = ["l1tex__t_sector_hit_rate.pct", "lts__t_sector_hit_rate.pct"].filter((name) => name in data.terms);
  if (counters.length) box.append(el("p", { class: "soft" }, "Hit rates: ", counters.map((name, index) => [index ? ", " : "", el("code", {}, name), why(name, below)])));
}, null, "sector");
