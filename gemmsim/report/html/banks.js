section("shared", "A warp's shared memory access", (box) => {
  const samples = data.samples.filter((sample) => sample.space === "shared");
  if (!samples.length) return box.append(el("p", {}, "The kernel does not access shared memory."));
  samples.sort((a, b) => (b.worst || b.representative).conflicts - (a.worst || a.representative).conflicts || a.index - b.index);
  let sample = samples[0], access = sample.representative, lane = 0, only = 0;
  const says = readout(), summary = el("p");
  says.id = "bank-readout";
  summary.id = "bank-summary";
  const banksOf = (each) => Array.from({ length: Math.max(1, sample.width / 4) }, (_, word) => (list(access.bank)[each] + word) % 32);
  const drawing = steered("32 lanes by 32 banks; up and down choose a lane", (width) => {
    const left = 46, size = clamp((width - left - 2) / 32, 12, 22), tall = Math.min(size, 15), top = 26, parts = [];
    for (let bank = 0; bank < 32; bank++) if (bank % 4 === 0 || bank === 31) parts.push(svg("text", { x: left + (bank + 0.5) * size, y: top - 5, "text-anchor": "middle", class: "soft tiny" }, String(bank)));
    parts.push(svg("text", { x: left, y: 9, class: "soft tiny" }, "bank"));
    parts.push(svg("rect", { x: left, y: top, width: 32 * size, height: 32 * tall, fill: "var(--faint)" }));
    for (let line = 4; line < 32; line += 4) parts.push(svg("line", { x1: left + line * size, x2: left + line * size, y1: top, y2: top + 32 * tall, stroke: "var(--line)" }), svg("line", { x1: left, x2: left + 32 * size, y1: top + line * tall, y2: top + line * tall, stroke: "var(--line)" }));
    for (let each = 0; each < LANES; each++) {
      const wave = list(access.wavefront)[each], y = top + each * tall;
      if (each % 4 === 0 || each === lane) parts.push(svg("text", { x: 0, y: y + tall * 0.8, class: each === lane ? "tiny strong" : "soft tiny" }, `lane ${each}`));
      parts.push(svg("rect", { x: 0, y, width: left + 32 * size, height: tall, fill: "transparent", "data-lane": each }));
      if (list(access.offsets)[each] === null) continue;
      const faded = only && wave !== only - 1;
      for (const bank of banksOf(each)) {
        parts.push(svg("rect", { x: left + bank * size + 0.5, y: y + 0.5, width: size - 1, height: tall - 1, fill: wave < 0 ? "var(--c7)" : colour(wave), "fill-opacity": faded ? 0.12 : 1, "data-lane": each }));
        if (!faded && wave >= 0) parts.push(svg("text", { x: left + (bank + 0.5) * size, y: y + tall * 0.78, "text-anchor": "middle", class: "tiny", css: { fill: inkOn(wave) }, "pointer-events": "none" }, String(wave + 1)));
      }
    }
    parts.push(svg("rect", { x: left, y: top + lane * tall, width: 32 * size, height: tall, fill: "none", stroke: "var(--ink)", "stroke-width": 1.5, "pointer-events": "none" }));
    return svg("svg", { width: left + 32 * size + 1, height: top + 32 * tall + 2, onclick: (event) => {
      const hit = event.target.getAttribute("data-lane");
      if (hit !== null) choose(Number(hit));
    } }, parts);
  }, (dx, dy) => choose(lane + dx + dy), 440, (end) => choose(end ? 31 : 0));
  const slider = el("input", { type: "range", id: "wavefront", min: 0, max: 1, value: 0, "aria-label": "wavefront shown, 0 for all", oninput: () => { only = Number(slider.value); label(); drawing.redraw(); } });
  const shown = el("output", { for: "wavefront" });
  const label = () => { shown.textContent = only ? `wavefront ${only}` : "all wavefronts"; };
  function choose(next) {
    lane = clamp(next, 0, LANES - 1);
    const offset = list(access.offsets)[lane], wave = list(access.wavefront)[lane], banks = offset === null ? [] : banksOf(lane);
    says.textContent = offset === null ? `Lane ${lane} is inactive.` : `Lane ${lane}: byte ${number(access.base + offset)}, bank ${banks[0]}${banks.length > 1 ? ` to ${banks[banks.length - 1]}` : ""}, ${wave < 0 ? "no wavefront of its own" : `wavefront ${wave + 1} of ${access.wavefronts}`}.`;
    drawing.redraw();
  }
  function pick() {
    summary.replaceChildren(el("b", { class: access.conflicts ? "bad" : "good" }, plural(access.wavefronts, "wavefront")), access.conflicts ? `, ${number(access.conflicts)} of them because lanes want different words of one bank. ` : ", none of them for bank conflicts. ",
      `${plural(sample.width, "byte")} a lane; block ${access.block}, warp ${access.warp}, access ${access.execution + 1} of this instruction.`);
    only = 0;
    slider.value = 0;
    slider.max = access.wavefronts;
    label();
    choose(lane);
  }
  const tools = chosenSample(samples, (one, which) => { sample = one; access = which; pick(); }, "shared");
  box.append(tools, summary, el("div", { class: "tools" }, el("label", { css: { flex: "1 1 14rem" } }, slider, shown)), drawing.frame, says);
  pick();
}, "A row is a lane, a column one of the 32 banks of 4 bytes; the number and colour say which wavefront serves the lane. Two different words of one bank take two wavefronts; lanes that want the same word share one.", "bank conflict");
