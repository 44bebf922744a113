section("tiles", "The tiles a block walks through", (box) => {
  const view = data.block;
  if (!view || !view.phases.length) return box.append(el("p", {}, "The block touches no array."));
  let at = 0, timer = null;
  const phases = view.phases, says = readout();
  says.id = "tile-readout";
  const flat = (array) => (array.shape.length > 1 ? [array.shape.slice(0, -1).reduce((a, b) => a * b, 1), array.shape[array.shape.length - 1]] : [1, array.shape[0]]);
  const by = (name) => view.arrays.find((array) => array.name === name);
  const [a, b, c] = ["A", "B", "C"].map(by);
  const gemm = a && b && c && flat(a)[1] === flat(b)[0] && flat(c)[0] === flat(a)[0] && flat(c)[1] === flat(b)[1];
  function layout(width) {
    const room = Math.min(width, 1000), places = new Map();
    if (gemm) { // B is above C and A at its left, so that their rows and columns line up
      const [m, k] = flat(a), n = flat(b)[1], scale = Math.min((room - 40) / (k + n), clamp(0.62 * width, 340, 600) / (k + m)), size = (v) => Math.max(10, v * scale);
      places.set(a.position, [4, size(k) + 34, size(k), size(m)]).set(b.position, [size(k) + 22, 16, size(n), size(k)]).set(c.position, [size(k) + 22, size(k) + 34, size(n), size(m)]);
      return [places, size(k) + size(n) + 30, size(k) + size(m) + 40];
    }
    let x = 4, tallest = 0;
    for (const array of view.arrays) {
      const [rows, columns] = flat(array), scale = Math.min(220, room / view.arrays.length - 14) / Math.max(rows, columns), w = Math.max(10, columns * scale), h = Math.max(10, rows * scale);
      places.set(array.position, [x, 16, w, h]);
      x += Math.max(w, 60) + 14;
      tallest = Math.max(tallest, h);
    }
    return [places, x, tallest + 20];
  }
  const rectangle = (place, array, part, attributes) => {
    const [x, y, w, h] = place, [rows, columns] = flat(array), [, , r0, r1, c0, c1] = part;
    const width = Math.max(3, (c1 - c0) / columns * w), height = Math.max(3, (r1 - r0) / rows * h);
    return svg("rect", { x: Math.min(x + c0 / columns * w, x + w - width), y: Math.min(y + r0 / rows * h, y + h - height), width, height, ...attributes });
  };
  const drawing = steered("Arrays and the tiles touched; left and right step", (width) => {
    const [places, w, h] = layout(width), parts = [];
    for (const array of view.arrays) {
      const [x, y, aw, ah] = places.get(array.position);
      parts.push(svg("rect", { x, y, width: aw, height: ah, fill: "var(--faint)", stroke: "var(--line)" }), svg("text", { x, y: y - 4, class: "strong" }, `${array.name} `, svg("tspan", { class: "soft tiny" }, `[${array.shape.join(", ")}]`)));
    }
    phases.slice(0, at + 1).forEach((phase, index) => phase.parts.forEach((part) => {
      const array = arrays.get(part[0]), paint = part[1] === "st" ? "var(--c1)" : "var(--c2)";
      parts.push(rectangle(places.get(part[0]), array, part, index === at ? { fill: paint, "fill-opacity": 0.85, stroke: "var(--ink)", class: "now" } : { fill: paint, "fill-opacity": 0.22 }));
    }));
    return svg("svg", { width: Math.max(w, 100), height: h, role: "img", "aria-label": phases[at].label }, parts);
  }, (dx, dy) => go(at + dx + dy), 300, (end) => go(end ? phases.length - 1 : 0));
  const button = (id, label, text, act) => el("button", { type: "button", id, "aria-label": label, onclick: act }, text);
  const first = button("tile-first", "First phase", "|◀", () => go(0)), back = button("tile-back", "Step back", "◀ back", () => go(at - 1));
  const next = button("tile-next", "Next phase", "next ▶", () => go(at + 1)), last = button("tile-last", "Last phase", "▶|", () => go(phases.length - 1));
  const play = button("tile-play", "Play", "play", () => (timer ? stop() : start()));
  const slider = el("input", { type: "range", id: "tile-slider", min: 0, max: phases.length - 1, value: 0, "aria-label": "phase", oninput: () => go(Number(slider.value)) });
  function start() {
    if (at === phases.length - 1) go(0);
    play.textContent = "pause";
    timer = setInterval(() => (at < phases.length - 1 ? move(at + 1) : stop()), 500);
  }
  function stop() {
    clearInterval(timer);
    timer = null;
    play.textContent = "play";
  }
  function go(index) {
    if (timer) stop();
    move(index);
  }
  function move(index) {
    at = clamp(index, 0, phases.length - 1);
    slider.value = at;
    first.disabled = back.disabled = at === 0;
    next.disabled = last.disabled = at === phases.length - 1;
    play.disabled = phases.length < 2;
    const parts = phases[at].parts.map((part) => {
      const name = arrays.get(part[0]).name, range = flat(arrays.get(part[0]))[0] > 1 ? `${name}[${part[2]}:${part[3]}, ${part[4]}:${part[5]}]` : `${name}[${part[4]}:${part[5]}]`;
      return `${part[1] === "st" ? "stores" : "loads"} ${range}`;
    });
    says.textContent = `${phases[at].label}: ${parts.join(", ")}.`;
    drawing.redraw();
  }
  const missing = view.iterations > 0 && phases.filter((phase) => phase.label.startsWith("iteration")).length < view.iterations;
  box.append(el("div", { class: "tools" }, first, back, play, next, last, slider), says, drawing.frame, legend([["var(--c2)", "loads"], ["var(--c1)", "stores"]]));
  if (missing) box.append(el("p", { class: "soft" }, `Of ${number(view.iterations)} iterations the first ones and the last are shown.`));
  box.querySelector("h2").after(el("p", {}, `Block (${view.place.join(", ")}) of the grid${view.iterations ? ", iteration by iteration of its loop over K" : ", which has no loop over K"}: the smallest rectangle of each array that holds what its threads touch.`));
  move(0);
}, null, "tile");
