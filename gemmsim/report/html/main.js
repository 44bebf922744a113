const themes = ["auto", "light", "dark"];
function theme(name) {
  if (name === "auto") document.documentElement.removeAttribute("data-theme");
  else document.documentElement.setAttribute("data-theme", name);
  const button = document.getElementById("theme");
  button.hidden = false;
  button.textContent = { auto: "◐ auto", light: "☀ light", dark: "☾ dark" }[name];
  button.setAttribute("aria-label", `Colours: ${name}`);
  button.dataset.name = name;
}
document.getElementById("theme").addEventListener("click", (event) => theme(themes[(themes.indexOf(event.currentTarget.dataset.name) + 1) % themes.length]));
theme("auto");

const main = document.getElementById("main"), nav = document.getElementById("nav");
for (const { id, title, build, intro, name } of sections) {
  const box = el("section", { id, "aria-labelledby": `${id}-title` }, el("h2", { id: `${id}-title` }, title, name ? why(name, below) : null), intro ? el("p", { class: "soft" }, intro) : null);
  main.append(box);
  build(box);
  nav.append(el("a", { href: `#${id}` }, title));
}
