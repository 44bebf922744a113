const data = JSON.parse(document.getElementById("data").textContent);
const REASONS = data.reasons.map(([name, spoken, letter, colour]) => ({ name, spoken, letter, colour, ink: inkOn(colour) }));
const SELECTED = data.reasons.findIndex(([name]) => name === "selected");

function inkOn(colour) {
  const [r, g, b] = [1, 3, 5].map((at) => (parseInt(colour.slice(at, at + 2), 16) / 255) ** 2.2);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b < 0.18 ? "#fff" : "#000";
}

// The states of a warp follow one another without gaps. The data hold their durations; here they get their beginnings,
// by which they are searched.
function unpacked([name, part, begin, states, memory]) {
  const count = states.length / 3;
  const warp = { name, part, begin: new Int32Array(count + 1), reason: new Uint8Array(count), code: new Int32Array(count), memory: [] };
  let at = begin;
  for (let n = 0; n < count; n++) {
    warp.begin[n] = at;
    warp.reason[n] = states[3 * n + 1];
    warp.code[n] = states[3 * n + 2];
    at += states[3 * n];
  }
  warp.begin[count] = at;
  for (let n = 0; n < memory.length; n += 4) {
    warp.memory.push({ begin: memory[n], end: memory[n] + memory[n + 1], code: memory[n + 2], level: memory[n + 3] });
  }
  return warp;
}
const warps = data.warps.map(unpacked);
const rings = data.rings.map(([block, stages, flat]) => {
  const fills = [];
  for (let n = 0; n < flat.length; n += 4) fills.push({ stage: flat[n], asked: flat[n + 1], full: flat[n + 2], free: flat[n + 3] });
  return { block, stages, fills };
});

// The number of the state in which a warp is at a cycle, -1 where the warp is not there.
function stateAt(warp, cycle) {
  const begin = warp.begin;
  let low = 0, high = begin.length - 1;
  if (cycle < begin[0] || cycle >= begin[high]) return -1;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (begin[middle] <= cycle) low = middle; else high = middle;
  }
  return low;
}

const issues = (() => {
  const found = [];
  for (const warp of warps) warp.reason.forEach((reason, n) => { if (reason === SELECTED) found.push(warp.begin[n]); });
  return Int32Array.from(found).sort();
})();
// How many memory instructions are under way: [cycle, count from that cycle on], by ascending cycle.
const flights = (() => {
  const change = new Map();
  const add = (at, step) => change.set(at, (change.get(at) || 0) + step);
  for (const warp of warps) for (const one of warp.memory) { add(one.begin, 1); add(one.end, -1); }
  let count = 0;
  return [...change].sort((a, b) => a[0] - b[0]).map(([at, step]) => [at, (count += step)]);
})();
const MOST_FLIGHTS = flights.reduce((most, [, count]) => Math.max(most, count), 0);
const PARTS = new Set(warps.map((warp) => warp.part)).size;

// How many of the numbers, which ascend, are below a bound.
function below(sorted, bound, key = (one) => one) {
  let low = 0, high = sorted.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (key(sorted[middle]) < bound) low = middle + 1; else high = middle;
  }
  return low;
}
