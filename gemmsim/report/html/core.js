const data = JSON.parse(document.getElementById("data").textContent);
const report = data.report;
const LANES = 32;

// Every text becomes a text node, so that nothing of the data is ever read as markup.
function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "css") for (const [key, each] of Object.entries(value)) node.style.setProperty(key, each);
    else if (value === true) node.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) node.setAttribute(name, value);
  }
  for (const child of children.flat(3)) {
    if (child !== null && child !== undefined && child !== false) node.append(child);
  }
  return node;
}
const el = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
const svg = (tag, attributes, ...children) =>
  fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);

function number(value, digits = 4) {
  if (value === null || value === undefined) return "unknown";
  if (Number.isInteger(value) || Math.abs(value) >= 1000) return Math.round(value).toLocaleString("en-US");
  return String(Number(value.toPrecision(digits)));
}
function short(value) {
  const steps = [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]];
  const step = steps.find(([size]) => Math.abs(value) >= size);
  return step ? `${Number((value / step[0]).toPrecision(3))} ${step[1]}` : number(value, 3);
}
const sized = (bytes) => `${short(bytes)}B`.replace(/(\d)B$/, "$1 B");
const percent = (value, digits = 1) => (value === null ? "-" : `${value.toFixed(digits)} %`);
const plural = (count, one, many = `${one}s`) => `${number(count)} ${count === 1 ? one : many}`;
const colour = (index) => `var(--c${((index % 8) + 8) % 8})`;
const inkOn = (index) => `var(--t${((index % 8) + 8) % 8})`;
const list = (index) => data.lists[index];
const arrays = new Map(((data.block && data.block.arrays) || []).map((array) => [array.position, array]));
const code = new Map(data.code.map((row) => [row[0], row]));

function unravel(element, shape) {
  const index = [];
  for (let axis = shape.length - 1; axis >= 0; axis--) {
    index.unshift(element % shape[axis]);
    element = Math.floor(element / shape[axis]);
  }
  return index;
}
const named = (array, element) => `${array.name}[${unravel(element, array.shape).join(", ")}]`;

const sections = [];
function section(id, title, build, intro = null, name = null) {
  sections.push({ id, title, build, intro, name });
}
