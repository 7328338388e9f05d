// Regressions: quality of predictions, and the prediction and interval of a row.

const amount = (value) => (value === null || !Number.isFinite(value) ? "–"
  : value.toLocaleString("en", { maximumSignificantDigits: 5 }).replace("-", "−"));

// The quantity that contributions add to: the score of a class, or the predicted number.
const scoreOf = (data, name) => (data.numbers ? name : `the score of ${name}`);

function numberCards({ numbers }) {
  const [{ name, figures }] = numbers.targets, mean = figures.always_the_mean;
  const several = numbers.targets.length > 1 ? ` of ${name}` : "";
  return [
    [figures.r2 === undefined ? "–" : figures.r2.toFixed(3), `R2${several} on ${whole(numbers.rows)} ${measuredOn[numbers.how]}`],
    [amount(figures.rmse), `root mean squared error; ${amount(mean.rmse)} by always saying the mean`],
    [amount(figures.mae), `mean absolute error; ${amount(mean.mae)} by the mean`],
    [percent(figures.coverage), `are within their ${percent(numbers.coverage, 0)} interval`],
    [amount(figures.mean_width), `mean width of it; ${amount(mean.mean_width)} around the mean`],
  ];
}

function numberLead({ numbers }) {
  const [{ name, figures }] = numbers.targets, mean = figures.always_the_mean;
  return `${figures.r2 === undefined ? "" : `R2 is ${figures.r2.toFixed(3)}: `}predictions of ${name} for ${whole(numbers.rows)} `
    + `${measuredOn[numbers.how]} are ${amount(figures.mae)} off on average; always saying the mean is ${amount(mean.mae)} off.`;
}

function numberQuality(section, { numbers }) {
  const [list, controls] = choice("number-target", numbers.targets.map(({ name }) => name), "Target", show);
  const holder = element("div", { class: "columns quality" });
  section.append(element("div", { class: "controls" }, ...controls), holder);

  // Dots, the line of exact predictions, and the band of intervals behind them.
  function picture(title, below, left, xs, ys, from, to, band = null) {
    const xAxis = axisOver(xs, 0.03, 5, amount);
    const yAxis = axisOver([...ys, from[1], to[1], ...(band ? [...band[1], ...band[2]] : [])], 0.03, 5, amount);
    const shape = { width: 440, height: 330, left: 62, isFluid: true };
    return element("figure", {}, element("figcaption", {}, title),
      chart({ ...shape, xAxis, yAxis, below, label: `${title}; ${left}, by ${below}` }, (x, y) => [
        ...(band ? [svg("path", { class: "band",
          d: `${pathThrough(x, y, [...band[0], ...[...band[0]].reverse()], [...band[1], ...[...band[2]].reverse()])}Z` })] : []),
        dashed(x, y, from, to),
        svg("g", { class: "points" }, ...xs.map((value, i) => svg("circle", { r: 2.2, cx: x(value), cy: y(ys[i]) })))]));
  }

  function show() {
    const { name, said, truth, figures, band } = numbers.targets[Math.max(list.selectedIndex, 0)];
    const [low, high] = [Math.min(...said), Math.max(...said)];
    const some = said.length < numbers.rows ? ` (${whole(said.length)} of ${whole(numbers.rows)} rows)` : "";
    holder.replaceChildren(
      picture(`True ${name}, by what was predicted${some}; on the dashed line predictions are right`,
        `predicted ${name}`, `true ${name}`, said, truth, [low, low], [high, high]),
      picture(`Residuals: true less predicted; ${percent(figures.coverage)} are within the ${percent(numbers.coverage, 0)} interval`,
        `predicted ${name}`, "true less predicted", said, truth.map((value, i) => value - said[i]), [low, 0], [high, 0], band));
  }
  show();
}

// The predictions of a row, and their intervals.
function numberOutcome(data, panel, scores) {
  const names = data.numbers.targets.map(({ name }) => name);
  const predicted = (found) => names.map((_, k) => (panel.isLogarithm ? Math.exp(found[k]) : found[k]));
  // After the scores come logarithms of spreads, if the spread depends on the row.
  const boundsOf = (values, found) => values.map((value, k) => {
    if (panel.lower[k] === null || panel.upper[k] === null) return null;
    const spread = found.length > names.length ? Math.exp(found[names.length + k]) : 1;
    const unit = spread * (panel.isLogarithm ? Math.sqrt(value) : 1);
    const low = value + unit * panel.lower[k];
    return [panel.isLogarithm ? Math.max(low, 0) : low, value + unit * panel.upper[k]];
  });
  const known = scores.map(predicted);
  const isOutside = known.map((values, i) => boundsOf(values, scores[i]).some((bounds, k) =>
    bounds !== null && (panel.labels[i][k] < bounds[0] || panel.labels[i][k] > bounds[1])));
  const spans = names.map((_, k) => {
    const all = known.flatMap((values, i) => [values[k], panel.labels[i][k]]);
    return [Math.min(...all), Math.max(...all)];
  });
  const verdict = element("p", { class: "verdict", role: "status" });
  const list = element("ol", { class: "bars ranges", "aria-label": "Predictions, their intervals and the true numbers" });
  const told = element("p", { class: "legend" }, "bar: interval; line: prediction; ring: true number");
  const shown = (values) => names.map((name, k) => (names.length > 1 ? `${name} ${amount(values[k])}` : amount(values[k]))).join(", ");

  return {
    nodes: [verdict, list, told],
    mistake: "next outside its interval",
    isMistake: (i) => isOutside[i],
    option: (i) => `row ${panel.numbers[i]}: ${shown(panel.labels[i])}, predicted ${shown(known[i])}`,
    choose: () => {},
    update(found, chosen, moved) {
      const values = predicted(found), bounds = boundsOf(values, found), truth = panel.labels[chosen];
      list.replaceChildren(...names.map((name, k) => {
        const position = scale(...spans[k], 0.03, 0.97), share = (value) => Math.min(Math.max(position(value), 0), 1);
        const marks = [bounds[k] ? bar(...bounds[k].map(share)) : null, bar(share(values[k]), 0, "said"), bar(share(truth[k]), 0, "truth")];
        const [lower, upper] = bounds[k] || [null, null];
        return element("li", { class: "best", "data-score": found[k], "data-prediction": values[k], "data-lower": lower, "data-upper": upper },
          ...barLine(name, marks.filter(Boolean), amount(values[k])));
      }));
      const before = shown(known[chosen]), now = shown(values);
      verdict.replaceChildren(names.length > 1 ? "The model says " : `${names[0]} is predicted to be `, element("strong", {}, now),
        now === before ? "" : `, before the change ${before}`,
        names.length === 1 && bounds[0] ? `, and ${percent(panel.coverage, 0)} of such rows are between ${amount(bounds[0][0])} and ${amount(bounds[0][1])}` : "",
        `. The row has ${shown(truth)}.`, moved.length ? ` Changed: ${moved.join(", ")}.` : "");
    },
  };
}
