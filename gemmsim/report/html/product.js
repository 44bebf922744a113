section("product", "Inner and outer product", (box) => {
  const tunables = report.kernel.tunables || {}, DEPTH = 4;
  let rows = clamp(tunables.tm || 4, 1, 8), columns = clamp(tunables.tn || 4, 1, 8), step = Math.ceil(1.5 * rows * columns);
  const says = readout(), inner = el("div"), outer = el("div");
  says.id = "product-readout";
  const steps = () => rows * columns * DEPTH;
  // How far each order has come after `step` products. The inner product computes one element of C after the other, the
  // outer product takes one k after the other.
  const state = (order) => {
    const done = Array(rows * columns).fill(0);
    for (let s = 0; s < step; s++) done[order === "inner" ? Math.floor(s / DEPTH) : s % (rows * columns)] += 1;
    const now = Math.max(0, step - 1), cell = order === "inner" ? Math.floor(now / DEPTH) : now % (rows * columns), k = order === "inner" ? now % DEPTH : Math.floor(now / (rows * columns));
    const loads = order === "inner" ? 2 * step : Math.ceil(step / (rows * columns)) * (rows + columns);
    return { done, row: Math.floor(cell / columns), column: cell % columns, k, loads };
  };
  const figure = (order) => chart(`${order} product`, (width) => {
    const size = Math.min(26, (width - 30) / (DEPTH + columns)), parts = [], s = state(order), x0 = DEPTH * size + 22, y0 = DEPTH * size + 38;
    const name = (x, y, text) => parts.push(svg("text", { x, y, class: "soft" }, text));
    name(4, y0 - 6, "A");
    name(x0, 12, "B");
    name(x0, y0 - 6, "C");
    const cell = (x, y, paint, opacity, text, ink) => {
      parts.push(svg("rect", { x, y, width: size - 2, height: size - 2, fill: paint, "fill-opacity": opacity, stroke: "var(--line)" }));
      if (text) parts.push(svg("text", { x: x + size / 2 - 1, y: y + size * 0.65, "text-anchor": "middle", class: "tiny", css: ink ? { fill: ink } : {} }, text));
    };
    const held = (row, column, k) => step > 0 && k === s.k && (order === "outer" || (row === null || row === s.row) && (column === null || column === s.column));
    for (let row = 0; row < rows; row++) for (let k = 0; k < DEPTH; k++) cell(4 + k * size, y0 + row * size, held(row, null, k) ? "var(--c2)" : "var(--faint)", 0.9);
    for (let column = 0; column < columns; column++) for (let k = 0; k < DEPTH; k++) cell(x0 + column * size, 18 + k * size, held(null, column, k) ? "var(--c2)" : "var(--faint)", 0.9);
    for (let row = 0; row < rows; row++) for (let column = 0; column < columns; column++) {
      const done = s.done[row * columns + column], now = step > 0 && row === s.row && column === s.column;
      cell(x0 + column * size, y0 + row * size, now ? "var(--c1)" : done ? "var(--c0)" : "var(--faint)", now ? 0.9 : done ? 0.2 + 0.15 * done : 0.9, done ? String(done) : "", now ? inkOn(1) : null);
    }
    return svg("svg", { width: x0 + columns * size + 4, height: y0 + rows * size + 4, role: "img", "aria-label": `${order} product after ${step} multiply-adds` }, parts);
  }, 200);
  const drawings = { inner: figure("inner"), outer: figure("outer") };
  inner.append(el("h3", {}, "Inner: one element of C at a time"), drawings.inner.frame);
  outer.append(el("h3", {}, "Outer: one k at a time"), drawings.outer.frame);
  const range = (id, label, most, value, act) => el("input", { type: "range", id, min: id === "product-step" ? 0 : 1, max: most, value, "aria-label": label, oninput: (event) => act(Number(event.target.value)) });
  const stepper = range("product-step", "multiply-adds done", steps(), step, (value) => { step = value; show(); });
  const tm = range("product-rows", "rows of C a thread", 8, rows, (value) => { rows = value; reset(); }), tn = range("product-columns", "columns of C a thread", 8, columns, (value) => { columns = value; reset(); });
  const tmText = el("output"), tnText = el("output");
  function reset() {
    step = Math.min(step, steps());
    stepper.max = steps();
    show();
  }
  function show() {
    tmText.textContent = String(rows);
    tnText.textContent = String(columns);
    stepper.value = step;
    const products = steps();
    says.textContent = `After ${number(step)} of ${number(products)} multiply-adds: ${number(state("inner").loads)} values loaded by the inner product, ${number(state("outer").loads)} by the outer. `
      + `In all ${number(2 * products)} against ${number((rows + columns) * DEPTH)}: the outer product uses each value ${number(rows * columns / (rows + columns) * 2, 3)} times as well.`;
    Object.values(drawings).forEach((drawing) => drawing.redraw());
  }
  const used = data.reuse;
  const own = used && used.products_a_word !== null
    ? `This kernel makes ${number(used.products_a_word, 3)} multiply-adds for each 4-byte word that a thread loads from ${used.shared_words ? "shared" : "global"} memory in its loop over K.`
    : "This kernel has no loop over K that loads what it multiplies.";
  box.append(el("p", {}, el("b", {}, own)), el("div", { class: "tools" }, el("label", {}, "rows", tm, tmText), el("label", {}, "columns", tn, tnText), el("label", { css: { flex: "1 1 14rem" } }, "step", stepper)), says, el("div", { class: "pair" }, inner, outer),
    legend([["var(--c2)", "values of A and B in use"], ["var(--c1)", "element of C worked on"], ["var(--c0)", "multiply-adds done"]]));
  show();
}, "A thread that computes a tile of C in registers can take its elements one after the other, loading two values for each multiply-add, or all of them for one k after the other, loading each value once for a whole row or column.", "outer product");
