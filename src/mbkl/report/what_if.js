// Rows whose values can be changed, with the resulting probabilities or numbers.

// Probabilities from scores, as in Python; two classes share one score.
function chancesOf({ rule, temperature, offset }, scores) {
  const isTwo = scores.length === 1;
  const all = isTwo ? [rule === "softplus" ? -scores[0] : 0, scores[0]] : Array.from(scores);
  const highest = Math.max(...all);
  const odds = all.map((score) => {
    const scaled = (score + offset) / temperature;
    if (rule === "softplus") return Math.max(scaled, 0) + Math.log1p(Math.exp(-Math.abs(scaled)));
    if (rule === "one-vs-rest" && !isTwo) return 1 / (1 + Math.exp(-score));
    return Math.exp((score - highest) / temperature);
  });
  const sum = odds.reduce((a, b) => a + b, 0);
  return odds.map((value) => value / sum);
}

// The predicted class of a row, and the probabilities or scores of all classes.
function classOutcome(data, panel, scores) {
  const isTwo = data.scores.length === 1, names = panel.classes, hasChances = panel.chances !== null;
  const barsOf = (found) => (isTwo ? [-found[0], found[0]] : Array.from(found));
  const best = (found) => { const all = barsOf(found); return isTwo ? Number(found[0] > 0) : all.indexOf(Math.max(...all)); };
  const largest = Math.max(...scores.map((found) => Math.max(...barsOf(found).map(Math.abs)))) * 1.15 || 1;
  const isMistake = (i) => names[best(scores[i])] !== panel.labels[i];
  const verdict = element("p", { class: "verdict", role: "status" });
  const list = element("ol", { class: hasChances ? "bars chances" : "bars diverging",
    "aria-label": hasChances ? "Probabilities of the classes" : "Scores of the classes" });
  let shown = [];

  return {
    nodes: [verdict, list],
    mistake: "next mistake",
    isMistake,
    option: (i) => `row ${panel.numbers[i]}: ${panel.labels[i]}${isMistake(i) ? `, taken for ${names[best(scores[i])]}` : ""}`,
    choose(row) {
      const all = barsOf(scores[row]);
      const order = all.map((_, i) => i).sort((a, b) => all[b] - all[a]);
      shown = order.slice(0, 12).sort((a, b) => a - b);
    },
    update(found, chosen, moved) {
      const all = barsOf(found), winner = best(found), before = best(scores[chosen]);
      if (!shown.includes(winner)) shown = [...shown.slice(0, 11), winner].sort((a, b) => a - b);
      const chances = hasChances ? chancesOf(panel.chances, found) : null;
      list.replaceChildren(...shown.map((i) => {
        const mark = chances ? bar(0, chances[i]) : diverging(Math.max(Math.min(all[i] / largest, 1), -1));
        return element("li", { class: i === winner ? "best" : null, title: `score ${signed(all[i])}`, "data-score": all[i], "data-chance": chances && chances[i] },
          ...barLine(names[i], [mark], chances ? percent(chances[i]) : signed(all[i])));
      }));
      verdict.replaceChildren("The model says ", element("strong", {}, names[winner]),
        winner !== before ? `, before the change ${names[before]}` : "",
        `. The row is of class ${panel.labels[chosen]}.`, moved.length ? ` Changed: ${moved.join(", ")}.` : "");
    },
  };
}

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
  const scores = rows.map(scoresOf);
  const outcome = (data.numbers ? numberOutcome : classOutcome)(data, panel, scores);
  let current = Float64Array.from(rows[0]);
  let chosen = 0;

  const choice = element("select", { id: "what-if-row", onchange: () => choose(choice.selectedIndex) },
    ...rows.map((_, i) => element("option", { "data-scores": Array.from(scores[i]).join(" ") }, outcome.option(i))));
  const step = (by) => { choose((chosen + by + rows.length) % rows.length); };
  const nextMistake = () => {
    const order = rows.map((_, i) => (chosen + 1 + i) % rows.length);
    choose(order.find(outcome.isMistake));
  };
  const sliders = element("div", { class: "sliders" }), more = element("div", { class: "sliders" });
  const differs = ({ feature }) => !Object.is(current[feature], rows[chosen][feature]);
  const controls = panel.features.map((column, place) => (column.kind === "category" ? list : slider)(column, place));

  function control(column, place, write, ...inputs) {
    const line = element("div", { class: "slider" }, element("label", { for: `move-${place}`, title: column.name }, column.name), ...inputs);
    (place < 8 ? sliders : more).append(line);
    return () => {
      write(current[column.feature]);
      line.classList.toggle("moved", differs(column));
    };
  }

  function move(place, value) {
    current[panel.features[place].feature] = value;
    controls[place]();
    update();
  }

  // The levels of a category, and the missing value.
  function list(column, place) {
    const n = column.levels.length;
    const select = element("select", { id: `move-${place}`, onchange: () => move(place, select.selectedIndex < n ? select.selectedIndex : NaN) },
      ...[...column.levels, "missing"].map((level) => element("option", {}, level)));
    return control(column, place, (level) => { select.selectedIndex = level >= 0 && level < n ? level : n; }, select);
  }

  function slider(column, place) {
    const isDate = column.kind === "date", isWholeNumber = column.kind !== "number";
    const steps = isWholeNumber ? Math.max(Math.min(column.high - column.low, 1000), 1) : 200;
    const tidy = (value) => (isWholeNumber ? Math.round(value) : value);
    const range = element("input", { type: "range", id: `move-${place}`, min: 0, max: steps, step: 1,
      oninput: () => move(place, tidy(column.low + (range.value / steps) * (column.high - column.low))) });
    const days = (text) => Math.round(Date.parse(text) / 86400000);
    const exact = element("input", { type: isDate ? "date" : "number", step: isDate ? null : isWholeNumber ? 1 : "any", placeholder: "missing",
      "aria-label": `${column.name}, exact value; empty means missing`,
      onchange: () => move(place, exact.value === "" ? NaN : isDate ? days(exact.value) : Number(exact.value)) });
    return control(column, place, (value) => {
      const share = (value - column.low) / (column.high - column.low || 1), isMissing = Number.isNaN(value);
      range.value = isMissing ? 0 : Math.round(steps * Math.min(Math.max(share, 0), 1));
      range.setAttribute("aria-valuetext", isMissing ? "missing" : writers[column.kind](value));
      exact.value = isMissing ? "" : isDate ? date(value) : Number(value.toPrecision(6));
    }, range, exact);
  }

  function choose(row) {
    chosen = row;
    choice.selectedIndex = row;
    current = Float64Array.from(rows[row]);
    outcome.choose(row);
    controls.forEach((show) => show());
    update();
  }

  function update() {
    outcome.update(scoresOf(current), chosen, panel.features.filter(differs).map((feature) => feature.name));
  }

  const rest = panel.features.length - 8;
  const limits = [];
  if (rows.length < panel.of) limits.push(`${rows.length} of ${whole(panel.of)} rows`);
  if (panel.features.length < data.columns) limits.push(`the ${panel.features.length} most important of ${whole(data.columns)} columns`);
  section.append(
    element("p", {}, "Choose a row, change it, and see what the model would say. The page computes it from the model's own tables.",
      limits.length ? ` Here are ${limits.join(", ")}.` : ""),
    element("div", { class: "controls" },
      element("label", { for: "what-if-row" }, "Row"), choice,
      element("button", { type: "button", onclick: () => step(-1) }, "previous"),
      element("button", { type: "button", onclick: () => step(1) }, "next"),
      rows.some((_, i) => outcome.isMistake(i)) ? element("button", { type: "button", onclick: nextMistake }, outcome.mistake) : null,
      element("button", { type: "button", onclick: () => choose(chosen) }, "undo changes")),
    element("div", { class: "what-if" },
      element("div", { class: "outcome" }, ...outcome.nodes),
      element("div", {}, sliders, rest > 0 ? element("details", {}, element("summary", {}, `${rest} more column${rest > 1 ? "s" : ""}`), more) : null)));
  choose(0);
}
