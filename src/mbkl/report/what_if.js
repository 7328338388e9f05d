// Move a feature of a row, see the scores move.

function whatIf(section, data) {
  const panel = data.whatIf;
  if (!panel) {
    section.append(element("p", { class: "note" },
      "The tables of this model are too large for a page, or need a chi2 map. A model with fewer maps (n_maps) has room."));
    return;
  }
  const scoresOf = makeModel(panel.model);
  const values = unpack(panel.rows);
  const width = data.features;
  const rows = panel.labels.map((_, i) => values.subarray(i * width, (i + 1) * width));
  const isTwo = data.scores.length === 1;
  const names = isTwo ? panel.classes : panel.columns.map((column) => panel.classes[column]);
  const scores = rows.map(scoresOf);
  const barsOf = (found) => (isTwo ? [-found[0], found[0]] : Array.from(found));
  const best = (found) => { const all = barsOf(found); return isTwo ? Number(found[0] > 0) : all.indexOf(Math.max(...all)); };
  const largest = Math.max(...scores.map((found) => Math.max(...barsOf(found).map(Math.abs)))) * 1.15 || 1;
  const isWhole = isTwo || names.length === panel.classes.length;
  const isMistake = (i) => isWhole && names[best(scores[i])] !== panel.labels[i];
  let current = Float64Array.from(rows[0]);
  let chosen = 0;
  let shown = [];

  const choice = element("select", { id: "what-if-row", onchange: () => choose(choice.selectedIndex) },
    ...rows.map((_, i) => {
      const guess = names[best(scores[i])], truth = panel.labels[i];
      const text = `row ${panel.numbers[i]}: ${truth}${isMistake(i) ? `, taken for ${guess}` : ""}`;
      return element("option", { "data-scores": Array.from(scores[i]).join(" ") }, text);
    }));
  const step = (by) => { choose((chosen + by + rows.length) % rows.length); };
  const nextMistake = () => {
    const order = rows.map((_, i) => (chosen + 1 + i) % rows.length);
    choose(order.find(isMistake));
  };
  const verdict = element("p", { class: "verdict", role: "status" });
  const chart = element("ol", { class: "bars diverging", "aria-label": "Scores of the classes" });
  const sliders = element("div", { class: "sliders" }), more = element("div", { class: "sliders" });
  const controls = panel.features.map(slider);

  function slider(feature, place) {
    if (feature.levels) return list(feature, place);
    const id = `move-${place}`;
    const range = element("input", { type: "range", id, min: 0, max: 200, step: 1,
      oninput: () => move(feature.low + (range.value / 200) * (feature.high - feature.low)) });
    const exact = element("input", { type: "number", step: "any", "aria-label": `${feature.name}, exact value; empty means missing`,
      onchange: () => move(exact.value === "" ? NaN : Number(exact.value)) });
    const line = element("div", { class: "slider" }, element("label", { for: id, title: feature.name }, feature.name), range, exact);
    (place < 8 ? sliders : more).append(line);
    function move(value) {
      current[feature.feature] = value;
      show();
      update();
    }
    function show() {
      const value = current[feature.feature];
      const share = (value - feature.low) / (feature.high - feature.low || 1);
      range.value = Number.isNaN(value) ? 0 : Math.round(200 * Math.min(Math.max(share, 0), 1));
      range.setAttribute("aria-valuetext", Number.isNaN(value) ? "missing" : number(value, 4));
      exact.value = Number.isNaN(value) ? "" : Number(value.toPrecision(6));
      line.classList.toggle("moved", !Object.is(value, rows[chosen][feature.feature]));
    }
    return show;
  }

  // A category: its levels, a missing value, and a level that was not seen in training.
  function list(feature, place) {
    const id = `move-${place}`, n = feature.levels.length;
    const level = element("select", { id, onchange: () => {
      const chosenLevel = level.selectedIndex;
      current[feature.feature] = chosenLevel < n ? chosenLevel : chosenLevel === n ? NaN : n;
      show();
      update();
    } }, ...[...feature.levels, "missing", "another"].map((name) => element("option", {}, name)));
    const line = element("div", { class: "slider" }, element("label", { for: id, title: feature.name }, feature.name), level);
    (place < 8 ? sliders : more).append(line);
    function show() {
      const value = current[feature.feature];
      level.selectedIndex = Number.isNaN(value) ? n : value < n ? value : n + 1;
      line.classList.toggle("moved", !Object.is(value, rows[chosen][feature.feature]));
    }
    return show;
  }

  function choose(row) {
    chosen = row;
    choice.selectedIndex = row;
    current = Float64Array.from(rows[row]);
    const all = barsOf(scores[row]);
    const order = all.map((_, i) => i).sort((a, b) => all[b] - all[a]);
    shown = order.slice(0, 12).sort((a, b) => a - b);
    controls.forEach((show) => show());
    update();
  }

  function update() {
    const found = scoresOf(current);
    const all = barsOf(found), winner = best(found), before = best(scores[chosen]);
    if (!shown.includes(winner)) shown = [...shown.slice(0, 11), winner].sort((a, b) => a - b);
    chart.replaceChildren(...shown.map((i) => {
      const share = Math.min(Math.abs(all[i]) / largest, 1) * 50;
      const bar = element("span", { class: "bar" });
      bar.style.width = `${share}%`;
      bar.style.left = `${all[i] < 0 ? 50 - share : 50}%`;
      return element("li", { class: i === winner ? "best" : null, "data-score": all[i] },
        element("span", { class: "name", title: names[i] }, names[i]),
        element("span", { class: "track", "aria-hidden": "true" }, bar),
        element("span", { class: "value" }, signed(all[i])));
    }));
    const moved = panel.features.filter((feature) => !Object.is(current[feature.feature], rows[chosen][feature.feature]));
    verdict.replaceChildren(isWhole ? "The model says " : "Of these classes the model puts first ", element("strong", {}, names[winner]),
      winner !== before ? `, before the change ${names[before]}` : "",
      `. The row is of class ${panel.labels[chosen]}.`, moved.length ? ` Changed: ${moved.map((feature) => feature.name).join(", ")}.` : "");
  }

  const rest = panel.features.length - 8;
  const limits = [];
  if (rows.length < data.accuracy.rows) limits.push(`${rows.length} of ${whole(data.accuracy.rows)} rows`);
  if (panel.features.length < data.features) limits.push(`the ${panel.features.length} most important of ${whole(data.features)} features`);
  if (!isWhole) limits.push(`the ${names.length} most frequent of ${panel.classes.length} classes`);
  section.append(
    element("p", {}, "Choose a row, move its features, and see what the model would say. The page computes the scores from the model's own tables.",
      limits.length ? ` Here are ${limits.join(", ")}.` : ""),
    element("div", { class: "controls" },
      element("label", { for: "what-if-row" }, "Row"), choice,
      element("button", { type: "button", onclick: () => step(-1) }, "previous"),
      element("button", { type: "button", onclick: () => step(1) }, "next"),
      rows.some((_, i) => isMistake(i)) ? element("button", { type: "button", onclick: nextMistake }, "next mistake") : null,
      element("button", { type: "button", onclick: () => choose(chosen) }, "undo changes")),
    element("div", { class: "what-if" },
      element("div", { class: "outcome" }, verdict, chart),
      element("div", {}, sliders, rest > 0 ? element("details", {}, element("summary", {}, `${rest} more features`), more) : null)));
  choose(0);
}
