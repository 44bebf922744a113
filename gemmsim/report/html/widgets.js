// A button that shows and hides what a metric, a stall reason or a term means. The text appears after the node that
// `place` returns for the button; without `place`, as a row of its own in a table, else after the button.
function why(name, place) {
  const term = data.terms[name];
  if (!term) return null;
  let box = null;
  const button = el("button", { type: "button", class: "why", "aria-expanded": "false", "aria-label": `What is ${term.title || name}?`, "data-term": name }, "?");
  button.addEventListener("click", () => {
    if (box) {
      box.remove();
      box = null;
    } else {
      box = el("div", { class: "explained", role: "note" }, el("b", {}, term.title || name), term.text.map(([heading, text]) => el("p", {}, heading ? el("span", { class: "how" }, `${heading}: `) : null, text)));
      const row = button.closest("tbody tr");
      if (row && !place) { // the new row is as wide as the table
        box = el("tr", {}, el("td", { colspan: row.cells.length }, box));
        row.after(box);
      } else (place ? place(button) : button).after(box);
    }
    button.setAttribute("aria-expanded", String(Boolean(box)));
  });
  return button;
}

const below = (button) => button.parentElement;
const glossary = (...names) => el("p", { class: "soft" }, names.filter((name) => data.terms[name]).map((name, index) => [index ? ", " : "", name, why(name, below)]));

// A cell of a table with a name and its question mark.
const term = (name, label) => [label || name, why(name)];

function table(head, rows, numeric = [], caption = null) {
  const cell = (tag) => (content, column) => el(tag, { class: numeric.includes(column) ? "num" : null }, content);
  const named = (content, column) => content === "" ? el("td") : fill(cell("th")(content, column), { scope: "col" }, []); // without words it is no head
  return el("div", { class: "wide", tabindex: "0", role: "region", "aria-label": caption || "table" },
    el("table", {}, el("thead", {}, el("tr", {}, head.map(named))), el("tbody", {}, rows.map((row) => el("tr", {}, row.map(cell("td")))))));
}
const bar = (share, background = null) =>
  el("span", { class: "bar", css: { width: `${Math.min(100, Math.max(0, 100 * share))}%`, ...(background ? { background } : {}) } });

// An SVG that is drawn again whenever its width changes. Where there are fewer than `least` pixels, it scrolls.
function chart(label, draw, least = 300) {
  const frame = el("div", { class: "wide canvas", role: "region", "aria-label": label, tabindex: "0" });
  let width = 0;
  const redraw = (force) => {
    const now = Math.max(least, Math.floor(frame.clientWidth));
    if (!frame.clientWidth || (!force && now === width)) return;
    width = now;
    frame.replaceChildren(draw(width));
  };
  // It is drawn in the next frame, because a drawing that changes the observed size would call the observer again.
  new ResizeObserver(() => requestAnimationFrame(() => redraw(false))).observe(frame);
  return { frame, redraw: () => redraw(true) };
}

// A drawing in which keys move the selection: the arrow keys call `move(dx, dy)`, Home and End call `ends(isEnd)`.
function steered(label, draw, move, least, ends) {
  const made = chart(label, draw, least);
  made.frame.setAttribute("role", "application");
  const ways = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
  made.frame.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    if (ways[event.key]) move(...ways[event.key]);
    else if (ends && (event.key === "Home" || event.key === "End")) ends(event.key === "End");
    else return;
    event.preventDefault();
  });
  return made;
}
// A text in which "line 35" leads to that line of the source, where it stands there.
function linked(text) {
  return text.split(/(\bline \d+\b)/).map((piece) => {
    const row = /^line \d+$/.test(piece) && `line-${piece.slice(5)}`;
    return row && data.source.some((file, index) => !index && file.lines.some((line) => `line-${line.line}` === row)) ? el("a", { class: "line", href: `#${row}` }, piece) : piece;
  });
}
const readout = () => el("div", { class: "readout", role: "status", "aria-live": "polite" });
const clamp = (value, low, high) => Math.min(high, Math.max(low, value));

function chooser(label, options, onchange, name) {
  const box = el("select", { id: name, onchange: () => onchange(Number(box.value)) },
    options.map((text, index) => el("option", { value: index }, text)));
  return { node: el("label", {}, label, box), box };
}
// A group of buttons of which exactly one is pressed.
function switcher(label, options, onchange) {
  const buttons = options.map((text, index) => el("button", { type: "button", "aria-pressed": String(index === 0), onclick: () => press(index) }, text));
  const press = (index) => {
    buttons.forEach((button, each) => button.setAttribute("aria-pressed", String(each === index)));
    onchange(index);
  };
  return { node: el("span", { role: "group", "aria-label": label, class: "tools" }, buttons), press };
}
const legend = (items) => el("div", { class: "legend" }, items.map(([background, text]) => el("span", {}, el("span", { class: "swatch", css: { background } }), text)));

function describe(sample) {
  const line = sample.line === null ? "" : `line ${sample.line}: `;
  const text = sample.text ? `  ${sample.text}` : "";
  const cut = text.length > 60 ? `${text.slice(0, 57)}...` : text;
  return `${line}${sample.mnemonic} (${sample.index})${sample.space === "local" ? " local" : ""}${cut}`;
}
