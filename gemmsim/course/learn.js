const data = JSON.parse(document.getElementById("data").textContent);
// Every text becomes a text node, so that nothing of the data is ever read as markup.
function el(tag, attributes, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "wide") node.style.setProperty("width", value);
    else node.setAttribute(name, value);
  }
  node.append(...children.flat(2).filter((child) => child !== null));
  return node;
}
const main = document.getElementById("main"), score = document.getElementById("score");
const asked = data.steps.reduce((sum, step) => sum + step.questions.length, 0);
let right = 0, told = 0;
const tell = () => { score.textContent = told ? `${right} of ${told} right, ${asked - told} to go.` : `${asked} questions.`; };
// "1,024", "0.2x", "90 %", "1/5"
function guessOf(text) {
  const found = /^\s*([-+]?\d[\d,_]*\.?\d*|\.\d+)\s*(?:\/\s*(\d+\.?\d*))?\D*$/.exec(text);
  return found && !(found[2] && !Number(found[2])) ? Number(found[1].replace(/[,_]/g, "")) / Number(found[2] || 1) : null;
}

data.steps.forEach((step, at) => {
  const after = el("div", { class: "after" });
  after.hidden = true;
  let open = step.questions.length;
  const forms = step.questions.map((question, number) => {
    const id = `guess-${at}-${number}`, box = el("input", { id, type: "text", inputmode: "decimal", autocomplete: "off" });
    const says = el("div", { role: "status", "aria-live": "polite" });
    function answer(guess) {
      if (box.disabled) return;
      box.disabled = true;
      buttons.forEach((button) => { button.disabled = true; button.hidden = true; });
      const ok = guess !== null && Math.abs(guess - question.answer) <= question.slack;
      told += 1;
      right += ok ? 1 : 0;
      tell();
      says.className = "told";
      says.append(guess === null ? "" : el("span", { class: ok ? "good" : "bad" }, ok ? "Right. " : "Not quite. "), `The run says ${question.shown}. ${question.because}`);
      open -= 1;
      if (!open) after.hidden = false;
      if (!open && at + 1 < data.steps.length) document.getElementById(`step-${at + 1}`).hidden = false;
    }
    const buttons = [el("button", { type: "submit" }, "Check"), el("button", { type: "button", class: "plain", onclick: () => answer(null) }, "Show")];
    const send = (event) => {
      event.preventDefault();
      const guess = guessOf(box.value);
      if (guess === null) box.setAttribute("aria-invalid", "true");
      else answer(guess);
    };
    return [el("form", { onsubmit: send }, el("label", { for: id }, question.ask), box, el("span", { class: "soft" }, question.unit), buttons), says];
  });
  const rows = step.counters.map(([name, before, now, moved]) => el("tr", {}, el("td", {}, name), el("td", { class: "num" }, before), el("td", { class: "num" }, now), el("td", { class: "num" }, moved)));
  const heads = ["counter", "before", "now", "change"].map((text, column) => el("th", { scope: "col", class: column ? "num" : "" }, text));
  const upTo = data.steps.slice(0, at + 1);
  after.append(el("h3", {}, "Look"), el("p", { class: "lead" }, step.verdict),
    el("div", { class: "times" }, upTo.map((one) => [el("span", {}, one.kernel), el("span", { class: "num" }, one.time), el("span", {}, el("span", { class: "bar", wide: `${100 * one.time_us / data.longest_us}%` }))])),
    el("div", { class: "wide", tabindex: "0", role: "region", "aria-label": `Counters of ${step.kernel}` }, el("table", {}, el("thead", {}, el("tr", {}, heads)), el("tbody", {}, rows))),
    step.why ? el("p", {}, `Why: ${step.why}`) : "", el("p", { class: "soft" }, "The whole report: ", el("code", {}, step.command)),
    el("h3", {}, "Explain"), el("p", {}, step.teaches), el("h3", {}, "Next"), el("p", {}, step.next));
  const source = step.source.map(([line, text]) => `${String(line).padStart(4)}  ${text}`).join("\n");
  const box = el("section", { id: `step-${at}`, "aria-labelledby": `title-${at}` }, el("h2", { id: `title-${at}` }, `${at + 1}. ${step.kernel}`), el("p", { class: "soft" }, step.title), el("p", {}, step.story),
    source ? el("div", { class: "wide", tabindex: "0", role: "region", "aria-label": `Source of ${step.kernel}` }, el("pre", {}, source)) : "", el("h3", {}, "Predict"), forms.flat(), after);
  box.hidden = at > 0;
  main.append(box);
});
tell();
