if (data.tile_maps.length) section("swizzle", "Where TMA puts a tile in the banks", (box) => {
  let map = data.tile_maps[0], piece = 0;
  const says = readout(), summary = el("p");
  says.id = "swizzle-readout";
  const nameOf = (one) => (arrays.has(one.array) ? arrays.get(one.array).name : `argument ${one.array + 1}`);
  const distinct = (groups) => new Set(groups).size;
  const drawing = steered("Rows of a tile and the bank groups of their 16-byte pieces; left and right choose a piece", (width) => {
    const left = 46, top = 30, tall = 24, count = map.groups[0].length, size = clamp((width - left - 4) / count, 26, 62), parts = [];
    for (let column = 0; column < count; column++) parts.push(svg("text", { x: left + (column + 0.5) * size, y: top - 6, "text-anchor": "middle", class: column === piece ? "tiny strong" : "soft tiny" }, String(column)));
    parts.push(svg("text", { x: left, y: 10, class: "soft tiny" }, "16-byte piece of the row"));
    map.groups.forEach((row, line) => {
      parts.push(svg("text", { x: 0, y: top + (line + 0.65) * tall, class: "soft tiny" }, `row ${line}`));
      row.forEach((group, column) => {
        parts.push(svg("rect", { x: left + column * size + 1, y: top + line * tall + 1, width: size - 2, height: tall - 2, fill: colour(group), "fill-opacity": column === piece ? 1 : 0.5, "data-piece": column }));
        parts.push(svg("text", { x: left + (column + 0.5) * size, y: top + (line + 0.65) * tall, "text-anchor": "middle", class: "tiny", css: column === piece ? { fill: inkOn(group) } : {}, "pointer-events": "none" }, String(group)));
      });
    });
    parts.push(svg("rect", { x: left + piece * size, y: top, width: size, height: map.groups.length * tall, fill: "none", stroke: "var(--ink)", "stroke-width": 1.5, "pointer-events": "none" }));
    return svg("svg", { width: left + count * size + 2, height: top + map.groups.length * tall + 2, onclick: (event) => {
      const hit = event.target.getAttribute("data-piece");
      if (hit !== null) choose(Number(hit));
    } }, parts);
  }, (dx) => choose(piece + dx), 300, (end) => choose(end ? map.groups[0].length - 1 : 0));
  function choose(next) {
    piece = clamp(next, 0, map.groups[0].length - 1);
    const groups = map.groups.map((row) => row[piece]), different = distinct(groups);
    says.textContent = `Piece ${piece} of rows 0 to ${groups.length - 1} lies in bank groups ${groups.join(" ")}: ${plural(different, "group")}, so that ${plural(Math.ceil(groups.length / different), "wavefront reads", "wavefronts read")} the ${groups.length} pieces.`;
    drawing.redraw();
  }
  function pick(index) {
    map = data.tile_maps[index];
    summary.replaceChildren(el("b", {}, `${nameOf(map)}: boxes of ${map.box.join(" x ")} ${map.dtype}, ${map.swizzle === "none" ? "no swizzle" : `swizzle ${map.swizzle}`}. `), `A row of a box has ${number(map.row_bytes)} bytes.`);
    choose(Math.min(piece, map.groups[0].length - 1));
  }
  const chosen = chooser("Tensor map", data.tile_maps.map((one) => `${nameOf(one)}, ${one.box.join(" x ")}, ${one.swizzle}`), pick, "tile-map");
  box.append(el("div", { class: "tools" }, chosen.node), summary, drawing.frame, says);
  pick(0);
}, "A row is one of the first eight rows of a tile in shared memory, a cell 16 bytes of it. The number and colour say which of the 8 groups of 4 banks holds the cell, in a tile that begins at a multiple of 1024 bytes. wgmma and ldmatrix read 16 bytes of eight rows at once: a column of this picture.", "swizzle");
