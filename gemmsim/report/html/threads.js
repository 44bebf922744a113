section("threads", "Threads and warps of a block", (box) => {
  const [bx, by, bz] = report.launch.block, count = bx * by * bz, warps = Math.ceil(count / LANES);
  const view = data.block, accesses = (view && view.threads) || [];
  let thread = 0, inputs = [];
  const says = readout(), details = el("div"), miniatures = el("div", { class: "tools" });
  says.id = "thread-readout";
  const place = (t) => [t % bx, Math.floor(t / bx) % by, Math.floor(t / (bx * by))];
  const drawing = steered(`${count} threads, a row a warp; arrow keys choose a thread`, (width) => {
    const left = 52, size = clamp((width - left - 4) / LANES, 9, 22), tall = Math.min(size, warps > 16 ? 11 : 16), parts = [];
    for (const lane of [0, 8, 16, 24, 31]) parts.push(svg("text", { x: left + (lane + 0.5) * size, y: 11, "text-anchor": "middle", class: "soft tiny" }, String(lane)));
    parts.push(svg("text", { x: 0, y: 11, class: "soft tiny" }, "lane"));
    for (let t = 0; t < count; t++) {
      const warp = Math.floor(t / LANES), lane = t % LANES, mine = warp === Math.floor(thread / LANES);
      if (lane === 0 && (warps <= 16 || warp % 4 === 0 || mine)) parts.push(svg("text", { x: 0, y: 16 + warp * tall + tall * 0.8, class: mine ? "tiny strong" : "soft tiny" }, `warp ${warp}`));
      // Threads of one row of the block have the same shade.
      const shade = (place(t)[1] + place(t)[2]) % 2 ? 0.32 : 0.16;
      parts.push(svg("rect", { x: left + lane * size, y: 16 + warp * tall, width: size - 1, height: tall - 1, fill: t === thread ? "var(--c1)" : "var(--c0)", "fill-opacity": t === thread ? 1 : mine ? shade + 0.35 : shade, "data-thread": t }));
    }
    return svg("svg", { width: left + LANES * size, height: 18 + warps * tall, onclick: (event) => {
      const hit = event.target.getAttribute("data-thread");
      if (hit !== null) choose(Number(hit));
    } }, parts);
  }, (dx, dy) => choose(thread + dx + LANES * dy), 340, (end) => choose(end ? count - 1 : 0));

  function reads() {
    const warp = Math.floor(thread / LANES), lane = thread % LANES, rows = [];
    for (const access of accesses) {
      const entry = access.warps[warp], at = entry ? list(entry[1])[lane] : null;
      if (at === null || at === undefined) continue;
      rows.push({ access, value: entry[0] + at, times: entry[2], sample: data.samples.find((one) => one.index === access.index) });
    }
    return rows;
  }
  function choose(next) {
    if (next < 0 || next >= count) return;
    thread = next;
    const [x, y, z] = place(thread), rows = reads();
    inputs.forEach((input, axis) => { input.value = [x, y, z][axis]; });
    says.textContent = `Thread (${[x, y, z].slice(0, bz > 1 ? 3 : 2).join(", ")}) is lane ${thread % LANES} of warp ${Math.floor(thread / LANES)}: number ${thread} of ${count} in its block.`;
    drawing.redraw();
    const global = rows.filter((row) => row.access.argument !== null), shared = rows.filter((row) => row.access.argument === null);
    const what = (row) => (row.access.argument === null ? `byte ${number(row.value)}` : named(arrays.get(row.access.argument), row.value));
    const body = (some, where, rest) => table(["instruction", "line", "does", "first touches", "times"], some.map((row) =>
      [el("code", {}, `${row.sample.mnemonic} (${row.access.index})`), row.sample.line === null ? "" : String(row.sample.line), verb(row.sample), el("code", {}, what(row)), number(row.times)]), [1, 4], `Accesses of the thread to ${where} memory${rest ? ", the rest" : ""}`);
    const open = details.querySelector("details.shared");
    const most = 12; // rows shown at first; an unrolled kernel has hundreds
    const long = details.querySelector("details.more");
    const arraysTouched = [body(global.slice(0, most), "global"), global.length > most ? el("details", { class: "more", open: Boolean(long && long.open) }, el("summary", {}, `${number(global.length - most)} more`), body(global.slice(most), "global", true)) : ""];
    details.replaceChildren(...(global.length ? arraysTouched : [el("p", { class: "soft" }, "This thread touches no array.")]),
      shared.length ? el("details", { class: "shared", open: Boolean(open && open.open) }, el("summary", {}, `Shared memory: ${plural(shared.length, "instruction")}`), body(shared, "shared")) : "");
    miniatures.replaceChildren(...small(global));
  }
  const verb = (sample) => ({ ld: "loads", st: "stores", ldgsts: "copies to shared memory", atom: "updates", red: "adds" })[sample.op] + (sample.space === "shared" && sample.op === "ld" ? " from shared" : "");
  function small(rows) {
    return [...arrays.values()].filter((array) => array.shape.length >= 1).map((array) => {
      const shape = array.shape.length > 1 ? array.shape.slice(-2) : [1, array.shape[0]], scale = 110 / Math.max(...shape);
      const [h, w] = shape.map((n) => Math.max(6, n * scale));
      const dots = rows.filter((row) => row.access.argument === array.position).map((row) => {
        const index = unravel(row.value, array.shape).slice(-2), [r, c] = index.length > 1 ? index : [0, index[0]];
        return svg("circle", { cx: 1 + (c + 0.5) / shape[1] * w, cy: 1 + (r + 0.5) / shape[0] * h, r: 3, fill: row.sample.op === "st" ? "var(--c1)" : "var(--c2)" });
      });
      return el("figure", {}, svg("svg", { width: w + 2, height: h + 2, class: "spread", role: "img", "aria-label": `Elements of ${array.name}` }, svg("rect", { x: 1, y: 1, width: w, height: h, fill: "var(--faint)", stroke: "var(--line)" }), dots),
        el("figcaption", { class: "soft" }, `${array.name} [${array.shape.join(", ")}]`));
    });
  }
  inputs = [["x", bx], ["y", by], ["z", bz]].map(([axis, most]) => el("input", { type: "number", id: `thread-${axis}`, min: 0, max: most - 1, value: 0, "aria-label": `threadIdx.${axis}`, disabled: most === 1, onchange: () => {
    const [x, y, z] = inputs.map((input, index) => clamp(Math.floor(Number(input.value) || 0), 0, [bx, by, bz][index] - 1));
    choose(x + bx * (y + by * z));
  } }));
  box.append(el("div", { class: "tools" }, el("span", {}, "threadIdx"), ["x", "y", "z"].map((axis, index) => el("label", {}, axis, inputs[index]))), drawing.frame, says);
  if (accesses.length) {
    box.append(el("h3", {}, `What it touches first, in block (${view.place.join(", ")})`), miniatures, legend([["var(--c2)", "loads"], ["var(--c1)", "stores"]]), details);
  }
  choose(0);
}, "A row is a warp of 32 threads; rows of the block (threadIdx.y) alternate in shade. Choose a thread with the mouse, the arrow keys or its coordinates.", "warp");
