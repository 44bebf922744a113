const canvas = document.getElementById("chart");
const pen = canvas.getContext("2d");
const GUTTER = 92, ROW = 15, STRIP = 34, AXIS = 22, LETTER_WIDTH = 9;
const LANE = 7; // pixels of a stage of a ring
const tallOf = (ring) => LANE * Math.max(2, ring.stages) + 6;
const RINGS = AXIS + 2 * STRIP;
const TOP = RINGS + rings.reduce((sum, ring) => sum + tallOf(ring), 0) + 8;
const view = { first: data.first, stop: data.stop, warp: 0, state: -1, only: -1 };

const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const width = () => canvas.clientWidth - GUTTER;
const scale = () => width() / (view.stop - view.first);
const toX = (cycle) => GUTTER + (cycle - view.first) * scale();
const toCycle = (x) => view.first + (x - GUTTER) / scale();
const rowY = (row) => TOP + row * ROW;

function draw() {
  const height = TOP + warps.length * ROW + 4, dots = window.devicePixelRatio || 1;
  canvas.style.height = `${height}px`;
  canvas.width = Math.round(canvas.clientWidth * dots);
  canvas.height = Math.round(height * dots);
  pen.setTransform(dots, 0, 0, dots, 0, 0);
  pen.fillStyle = css("--bg");
  pen.fillRect(0, 0, canvas.clientWidth, height);
  pen.textBaseline = "middle";
  drawAxis(height);
  strip(AXIS, "issue slots", (from, to) => (below(issues, to) - below(issues, from)) / ((to - from) * PARTS));
  strip(AXIS + STRIP, `in flight, of ${MOST_FLIGHTS}`, (from, to) => underWay(from, to) / (MOST_FLIGHTS || 1));
  rings.reduce((y, ring) => drawRing(y, ring), RINGS);
  warps.forEach(drawWarp);
  mark();
  document.getElementById("range").textContent =
    `cycles ${Math.floor(view.first).toLocaleString("en-US")} to ${Math.ceil(view.stop).toLocaleString("en-US")}`;
}

function drawAxis(height) {
  pen.font = "11px system-ui, sans-serif";
  const rough = ((view.stop - view.first) * 90) / width(), power = 10 ** Math.floor(Math.log10(rough));
  const step = Math.max(1, [1, 2, 5, 10].map((n) => n * power).find((n) => n >= rough));
  pen.textAlign = "center";
  for (let at = Math.ceil(view.first / step) * step; at < view.stop; at += step) {
    pen.fillStyle = css("--line");
    pen.fillRect(Math.round(toX(at)), AXIS - 4, 1, height - AXIS);
    pen.fillStyle = css("--soft");
    const text = at.toLocaleString("en-US"), half = pen.measureText(text).width / 2;
    pen.fillText(text, Math.min(Math.max(toX(at), GUTTER + half), GUTTER + width() - half), 9);
  }
}

function strip(y, name, share) {
  pen.textAlign = "right";
  pen.fillStyle = css("--soft");
  pen.fillText(name, GUTTER - 6, y + STRIP / 2);
  pen.fillStyle = css("--row");
  pen.fillRect(GUTTER, y, width(), STRIP - 4);
  pen.fillStyle = css("--accent");
  const wide = Math.max(1, scale());
  for (let x = 0; x < width(); x += wide) {
    const from = Math.floor(toCycle(GUTTER + x) + 1e-6), to = Math.max(from + 1, Math.floor(toCycle(GUTTER + x + wide) + 1e-6));
    const tall = Math.min(1, share(from, to)) * (STRIP - 4);
    pen.fillRect(GUTTER + x, y + STRIP - 4 - tall, wide, tall);
  }
}

// A lane for each stage: pale while TMA fills it, solid while it is full. Returns where the next ring begins.
function drawRing(y, ring) {
  const tall = tallOf(ring);
  pen.font = "11px system-ui, sans-serif";
  pen.textAlign = "right";
  pen.fillStyle = css("--soft");
  pen.fillText(`b${ring.block} ring, of ${ring.stages}`, GUTTER - 6, y + tall / 2 - 3);
  pen.fillStyle = css("--row");
  pen.fillRect(GUTTER, y, width(), tall - 6);
  const part = (from, to, stage, alpha) => {
    const left = Math.max(GUTTER, toX(from)), right = Math.min(GUTTER + width(), toX(to));
    if (right <= left) return;
    pen.globalAlpha = alpha;
    pen.fillRect(left, y + LANE * stage, Math.max(0.6, right - left - (right - left > 3 ? 1 : 0)), LANE - 1);
    pen.globalAlpha = 1;
  };
  pen.fillStyle = css("--accent");
  for (const fill of ring.fills) {
    part(fill.asked, fill.full, fill.stage, 0.35);
    part(fill.full, fill.free, fill.stage, 1);
  }
  return y + tall;
}

function underWay(from, to) {
  const at = below(flights, to, (one) => one[0]), first = below(flights, from, (one) => one[0]);
  let most = first > 0 ? flights[first - 1][1] : 0;
  for (let n = first; n < at; n++) most = Math.max(most, flights[n][1]);
  return most;
}

// States narrower than a pixel share it; the state with most of its cycles is drawn.
function drawWarp(warp, row) {
  const y = rowY(row), tall = ROW - 2, k = scale();
  pen.textAlign = "right";
  pen.font = "11px system-ui, sans-serif";
  pen.fillStyle = row === view.warp ? css("--accent") : css("--ink");
  pen.fillText(warp.name, GUTTER - 6, y + tall / 2);
  pen.fillStyle = css("--row");
  pen.fillRect(GUTTER, y, width(), tall);
  pen.textAlign = "center";
  pen.font = "bold 10px ui-monospace, monospace";
  const last = warp.begin.length - 1;
  let n = Math.max(0, stateAt(warp, Math.max(view.first, warp.begin[0])));
  let pixel = -1, held = new Map();
  const flush = () => {
    if (held.size) fillState([...held].reduce((a, b) => (b[1] > a[1] ? b : a))[0], pixel, y, 1, tall);
    held = new Map();
  };
  for (; n < last && warp.begin[n] < view.stop; n++) {
    const left = Math.max(GUTTER, toX(warp.begin[n])), right = Math.min(GUTTER + width(), toX(warp.begin[n + 1]));
    if (right <= left) continue;
    if (right - left >= 1) {
      flush();
      fillState(warp.reason[n], left, y, right - left, tall);
      continue;
    }
    if (Math.floor(left) !== pixel) flush();
    pixel = Math.floor(left);
    held.set(warp.reason[n], (held.get(warp.reason[n]) || 0) + (right - left));
  }
  flush();
  if (k >= 3) {
    pen.fillStyle = css("--ink");
    for (const one of warp.memory) if (one.end > view.first && one.begin < view.stop) {
      const left = Math.max(GUTTER, toX(one.begin));
      pen.fillRect(left, y + tall, Math.min(GUTTER + width(), toX(one.end)) - left, 1);
    }
  }
}

function fillState(reason, x, y, wide, tall) {
  const shown = view.only < 0 || view.only === reason;
  if (!shown) return;
  const { colour, ink, letter } = REASONS[reason];
  pen.fillStyle = colour;
  pen.fillRect(x, y, Math.max(0.6, wide - (wide > 3 ? 0.6 : 0)), tall);
  if (wide >= LETTER_WIDTH) {
    pen.fillStyle = ink;
    pen.fillText(letter, x + wide / 2, y + tall / 2 + 0.5);
  }
}

function mark() {
  const warp = warps[view.warp];
  if (view.state < 0 || !warp) return;
  const left = toX(warp.begin[view.state]), right = toX(warp.begin[view.state + 1]);
  pen.strokeStyle = css("--ink");
  pen.lineWidth = 2;
  pen.strokeRect(left - 1, rowY(view.warp) - 1, Math.max(4, right - left) + 2, ROW);
}
