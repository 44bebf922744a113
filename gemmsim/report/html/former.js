if (data.former) section("former", "Beside the baseline", (box) => {
  const { sentence, moves, same } = data.former;
  box.append(el("p", {}, `${sentence[0].toUpperCase()}${sentence.slice(1)}.`));
  if (moves.length) box.append(table(["counter or stall reason", "baseline", "here", "change"], moves.map(([name, before, now, moved]) => {
    const meaning = data.terms[name];
    return [el("span", {}, el("code", {}, name), why(name), meaning ? el("div", { class: "soft" }, meaning.title) : null),
      before === null ? "-" : number(before), now === null ? "-" : number(now), moved];
  }), [1, 2, 3], "What moved"));
  box.append(el("p", { class: "soft" }, `${plural(same, "value")} the same.`));
}, "What moved against the former prediction, farthest first. Stall reasons are in cycles an instruction.");
