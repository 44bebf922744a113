const LEAST_CYCLES = 20;
let waiting = false;
function redraw() {
  if (waiting) return;
  waiting = true;
  requestAnimationFrame(() => { waiting = false; draw(); });
}

function show(first, stop) {
  const most = data.stop - data.first, size = Math.min(most, Math.max(LEAST_CYCLES, stop - first));
  const start = Math.min(Math.max(data.first, first), data.stop - size);
  view.first = start;
  view.stop = start + size;
  redraw();
}
function zoom(factor, at = (view.first + view.stop) / 2) {
  const size = Math.max(LEAST_CYCLES, (view.stop - view.first) / factor);
  const share = (at - view.first) / (view.stop - view.first);
  show(at - share * size, at - share * size + size);
}
const pan = (share) => show(view.first + share * (view.stop - view.first), view.stop + share * (view.stop - view.first));

function select(row, state) {
  view.warp = row;
  view.state = state;
  const info = document.getElementById("info");
  const warp = warps[row];
  if (state < 0) {
    info.textContent = `${warp.name}: not on the SM here`;
  } else {
    const begin = warp.begin[state], end = warp.begin[state + 1], reason = REASONS[warp.reason[state]];
    const [sass, line, source] = data.code[warp.code[state]];
    const cycles = end - begin, under = warp.memory.filter((one) => one.begin < end && one.end > begin);
    const kinds = data.levels.map((name, level) => [name, under.filter((one) => one.level === level).length]);
    const flying = kinds.filter(([, count]) => count).map(([name, count]) => `${count} ${name}`).join(", ");
    info.textContent = [
      `${warp.name}, sub-partition ${warp.part}: ${reason.spoken}, cycle ${begin.toLocaleString("en-US")}` +
        (cycles > 1 ? ` to ${end.toLocaleString("en-US")}, ${cycles.toLocaleString("en-US")} cycles` : ""),
      `${reason.name === "selected" ? "" : "to issue: "}${sass}${line === null ? "" : `   line ${line}: ${source}`}`,
      `its memory instructions under way: ${flying || "none"}`,
    ].join("\n");
  }
  redraw();
}

function at(event) {
  const box = canvas.getBoundingClientRect();
  const row = Math.floor((event.clientY - box.top - TOP) / ROW), cycle = toCycle(event.clientX - box.left);
  return row >= 0 && row < warps.length && event.clientX - box.left > GUTTER ? [row, cycle] : null;
}

let drag = null;
canvas.addEventListener("pointerdown", (event) => {
  drag = { x: event.clientX, first: view.first, stop: view.stop };
  canvas.setPointerCapture(event.pointerId);
});
canvas.addEventListener("pointerup", () => { drag = null; });
canvas.addEventListener("pointermove", (event) => {
  if (drag && event.buttons) {
    const moved = ((drag.x - event.clientX) / width()) * (drag.stop - drag.first);
    if (Math.abs(drag.x - event.clientX) > 2) show(drag.first + moved, drag.stop + moved);
    return;
  }
  const place = at(event);
  if (place) select(place[0], stateAt(warps[place[0]], place[1]));
});
canvas.addEventListener("dblclick", (event) => { const place = at(event); if (place) zoom(3, place[1]); });
canvas.addEventListener("wheel", (event) => {
  if (!event.ctrlKey && !event.metaKey) return;
  event.preventDefault();
  const place = at(event);
  zoom(event.deltaY < 0 ? 1.4 : 1 / 1.4, place ? place[1] : undefined);
}, { passive: false });

function step(by) {
  const warp = warps[view.warp], last = warp.begin.length - 2;
  const seen = stateAt(warp, Math.floor((view.first + view.stop) / 2));
  const state = view.state < 0 ? Math.max(0, seen) : Math.min(last, Math.max(0, view.state + by));
  select(view.warp, state);
  const begin = warp.begin[state], end = warp.begin[state + 1], size = view.stop - view.first;
  if (begin < view.first || end > view.stop) show(begin - size / 3, begin - size / 3 + size);
}
function change(by) {
  const row = Math.min(warps.length - 1, Math.max(0, view.warp + by)), from = warps[view.warp];
  const cycle = view.state < 0 ? (view.first + view.stop) / 2 : Math.max(view.first, from.begin[view.state]);
  select(row, stateAt(warps[row], cycle));
}
const centre = () => (view.state < 0 ? undefined : warps[view.warp].begin[view.state]);
const KEYS = {
  ArrowRight: () => step(1), ArrowLeft: () => step(-1), ArrowDown: () => change(1), ArrowUp: () => change(-1),
  "+": () => zoom(1.6, centre()), "=": () => zoom(1.6, centre()), "-": () => zoom(1 / 1.6, centre()),
  Home: () => show(data.first, data.stop), PageDown: () => pan(0.8), PageUp: () => pan(-0.8),
};
canvas.addEventListener("keydown", (event) => {
  if (!KEYS[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  KEYS[event.key]();
});
for (const [id, act] of Object.entries({
  in: () => zoom(2, centre()), out: () => zoom(0.5, centre()), left: () => pan(-0.5), right: () => pan(0.5), all: () => show(data.first, data.stop),
})) document.getElementById(id).addEventListener("click", act);

function legend() {
  const cycles = REASONS.map(() => 0);
  for (const warp of warps) warp.reason.forEach((reason, n) => { cycles[reason] += warp.begin[n + 1] - warp.begin[n]; });
  const total = cycles.reduce((a, b) => a + b, 0);
  const box = document.getElementById("legend");
  REASONS.map((reason, n) => [reason, n]).filter(([, n]) => cycles[n]).sort((a, b) => cycles[b[1]] - cycles[a[1]]).forEach(([reason, n]) => {
    const button = document.createElement("button"), chip = document.createElement("i");
    button.type = "button";
    button.setAttribute("aria-pressed", "false");
    chip.textContent = reason.letter;
    chip.style.background = reason.colour;
    chip.style.color = reason.ink;
    button.append(chip, `${reason.spoken} ${((100 * cycles[n]) / total).toFixed(1)} %`);
    button.addEventListener("click", () => {
      view.only = view.only === n ? -1 : n;
      box.querySelectorAll("button").forEach((one) => one.setAttribute("aria-pressed", String(one === button && view.only === n)));
      redraw();
    });
    box.append(button);
  });
}

document.getElementById("scope").textContent = data.scope;
document.getElementById("rings").hidden = !rings.length;
legend();
new ResizeObserver(redraw).observe(canvas.parentElement);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
draw();
