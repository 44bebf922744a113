section("roofline", "Roofline", (box) => {
  const line = report.roofline;
  const levels = line.levels.filter((level) => level.intensity_flops_per_byte);
  if (!line.flops || !levels.length) return box.append(el("p", {}, "Unknown: the number of operations of this kernel is not known."));
  const bound = line.bound === "compute" ? "arithmetic" : line.bound.toUpperCase();
  box.append(el("p", {}, `Bound by ${bound}: at most ${short(line.attainable_flops)}FLOP/s`
    + (line.achieved_flops ? `; predicted ${short(line.achieved_flops)}FLOP/s, ${line.percent_of_attainable.toFixed(0)} % of that.` : ".")
    + " Each point is this kernel by the bytes that one level moved; the gap above it is what that level leaves open."));
  const shade = { dram: 0, l2: 2, l1: 1 };
  box.append(chart(`Roofline: ${bound} binds`, (width) => {
    const height = clamp(width * 0.5, 280, 440), left = 56, right = 12, top = 14, bottom = 42;
    const xs = levels.flatMap((level) => [level.intensity_flops_per_byte, level.ridge_flops_per_byte]);
    const reached = line.achieved_flops || line.attainable_flops;
    const [x0, x1] = [Math.log10(Math.min(...xs) / 4), Math.log10(Math.max(...xs) * 6)];
    const [y0, y1] = [Math.log10(Math.min(reached, ...levels.map((level) => level.attainable_flops)) / 6), Math.log10(line.peak_flops * 2.2)];
    const x = (value) => left + (Math.log10(value) - x0) / (x1 - x0) * (width - left - right);
    const y = (value) => height - bottom - (Math.log10(value) - y0) / (y1 - y0) * (height - top - bottom);
    const parts = [];
    for (let power = Math.ceil(x0); power <= x1; power++) {
      parts.push(svg("line", { x1: x(10 ** power), x2: x(10 ** power), y1: top, y2: height - bottom, stroke: "var(--faint)" }),
        svg("text", { x: x(10 ** power), y: height - bottom + 16, "text-anchor": "middle", class: "soft" }, String(10 ** power)));
    }
    for (let power = Math.ceil(y0); power <= y1; power++) {
      parts.push(svg("line", { x1: left, x2: width - right, y1: y(10 ** power), y2: y(10 ** power), stroke: "var(--faint)" }),
        svg("text", { x: left - 6, y: y(10 ** power) + 4, "text-anchor": "end", class: "soft" }, short(10 ** power)));
    }
    parts.push(svg("text", { x: (left + width) / 2, y: height - 6, "text-anchor": "middle", class: "soft" }, "FLOP a byte"),
      svg("text", { x: 12, y: top + 90, transform: `rotate(-90 12 ${top + 90})`, "text-anchor": "middle", class: "soft" }, "FLOP/s"));
    const flat = Math.min(...levels.map((level) => level.ridge_flops_per_byte));
    parts.push(svg("line", { x1: x(flat), x2: width - right, y1: y(line.peak_flops), y2: y(line.peak_flops), stroke: "var(--ink)", "stroke-width": 2 }),
      svg("text", { x: width - right, y: y(line.peak_flops) - 6, "text-anchor": "end" }, `${line.precision} ${short(line.peak_flops)}FLOP/s`));
    for (const level of levels) {
      const paint = colour(shade[level.name]), slope = level.peak_bytes_per_s;
      const from = Math.max(10 ** x0, 10 ** y0 / slope);
      parts.push(svg("line", { x1: x(from), y1: y(from * slope), x2: x(level.ridge_flops_per_byte), y2: y(line.peak_flops), stroke: paint, "stroke-width": 2 }));
      const at = level.intensity_flops_per_byte;
      parts.push(svg("line", { x1: x(at), x2: x(at), y1: y(level.attainable_flops), y2: y(reached), stroke: paint, "stroke-dasharray": "3 3" }),
        svg("circle", { cx: x(at), cy: y(reached), r: 6, fill: paint, stroke: "var(--card)", "stroke-width": 1.5 },
          svg("title", {}, `${level.name.toUpperCase()}: ${number(at)} FLOP a byte, at most ${short(level.attainable_flops)}FLOP/s`)),
        svg("text", { x: x(at), y: y(reached) + 20, "text-anchor": "middle", class: "strong" }, level.name.toUpperCase()));
    }
    return svg("svg", { width, height, role: "img", "aria-label": `Roofline of ${report.kernel.name}` }, parts);
  }).frame);
  box.append(legend(line.levels.map((level) => [colour(shade[level.name]), `${level.name.toUpperCase()} ${short(level.peak_bytes_per_s)}B/s`])));
  box.append(table(["level", "moved", "FLOP a byte", "ridge", "FLOP/s at most"], line.levels.map((level) =>
    [level.name.toUpperCase(), sized(level.bytes_moved), number(level.intensity_flops_per_byte), number(level.ridge_flops_per_byte), `${short(level.attainable_flops)}`]), [1, 2, 3, 4], "Roofline levels"));
}, null, "roofline");
