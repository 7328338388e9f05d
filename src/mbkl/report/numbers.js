// Numbers: how good predictions are, and what they and their intervals are for a row.

const amount = (value) => (value === null || !Number.isFinite(value) ? "–"
  : value.toLocaleString("en", { maximumSignificantDigits: 5 }).replace("-", "−"));

// What is added to: the score of a class, or a number itself.
const scoreOf = (data, name) => (data.numbers ? name : `the score of ${name}`);

function numberCards({ numbers }) {
  const [{ name, figures, mean }] = numbers.targets;
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
  const [{ name, figures, mean }] = numbers.targets;
  return `${figures.r2 === undefined ? "" : `R2 is ${figures.r2.toFixed(3)}: `}predictions of ${name} for ${whole(numbers.rows)} `
    + `${measuredOn[numbers.how]} are ${amount(figures.mae)} off on average; always saying the mean is ${amount(mean.mae)} off.`;
}

function numberQuality(section, { numbers }) {
  const choice = element("select", { id: "number-target" }, ...numbers.targets.map(({ name }) => element("option", {}, name)));
  const holder = element("div", { class: "columns quality" });
  if (numbers.targets.length > 1) {
    section.append(element("div", { class: "controls" }, element("label", { for: "number-target" }, "Target"), choice));
  }
  section.append(holder);

  // Dots, a line where predictions are right, and a band behind them.
  function picture(title, below, left, xs, ys, right, band) {
    const width = 440, height = 330, from = 62, to = width - 10, top = 10, bottom = height - 38;
    const all = [...ys, ...right.map(([, value]) => value), ...band.flat().map(([, value]) => value)];
    const [xLow, xHigh, yLow, yHigh] = [Math.min(...xs), Math.max(...xs), Math.min(...all), Math.max(...all)];
    const room = (low, high) => 0.03 * (high - low) || 1;
    const x = scale(xLow - room(xLow, xHigh), xHigh + room(xLow, xHigh), from, to);
    const y = scale(yLow - room(yLow, yHigh), yHigh + room(yLow, yHigh), bottom, top);
    const path = (points) => points.map(([a, b], i) => `${i ? "L" : "M"}${x(a)} ${y(b)}`).join("");
    return element("figure", {}, element("figcaption", {}, title),
      svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `${title}; ${left}, by ${below}` },
        axisLeft(y, ticks(yLow, yHigh, 5), from, to, amount), axisBelow(x, ticks(xLow, xHigh, 5), top, bottom, amount),
        band.length ? svg("path", { class: "band", d: `${path([...band[0], ...band[1].slice().reverse()])}Z` }) : null,
        svg("path", { class: "cursor", d: path(right), fill: "none" }),
        svg("g", { class: "points" }, ...xs.map((value, i) => svg("circle", { r: 2.2, cx: x(value), cy: y(ys[i]) }))),
        svg("text", { class: "title", x: (from + to) / 2, y: height - 6, "text-anchor": "middle" }, below)));
  }

  // Ends of intervals, less the prediction: means over rows of about the same prediction.
  function bandOf({ said, lower, upper }) {
    if ([...lower, ...upper].includes(null)) return [];
    const order = said.map((_, i) => i).sort((a, b) => said[a] - said[b]);
    const size = Math.max(Math.ceil(order.length / 30), 1);
    const parts = order.filter((_, i) => i % size === 0).map((_, k) => order.slice(k * size, (k + 1) * size));
    const mean = (part, value) => part.reduce((sum, i) => sum + value(i), 0) / part.length;
    const at = (part, k) => (k === 0 ? said[order[0]] : k === parts.length - 1 ? said[order.at(-1)] : mean(part, (i) => said[i]));
    return [lower, upper].map((ends) => parts.map((part, k) => [at(part, k), mean(part, (i) => ends[i] - said[i])]));
  }

  function show() {
    const one = numbers.targets[Math.max(choice.selectedIndex, 0)], { name, said, truth } = one;
    const ends = [Math.min(...said), Math.max(...said)];
    const some = said.length < numbers.rows ? ` (${whole(said.length)} of ${whole(numbers.rows)} rows)` : "";
    holder.replaceChildren(
      picture(`True ${name}, by what was predicted${some}; on the dashed line predictions are right`,
        `predicted ${name}`, `true ${name}`, said, truth, ends.map((value) => [value, value]), []),
      picture(`Residuals: true less predicted; ${percent(one.figures.coverage)} are within the ${percent(numbers.coverage, 0)} interval`,
        `predicted ${name}`, "true less predicted", said, truth.map((value, i) => value - said[i]), ends.map((value) => [value, 0]), bandOf(one)));
  }
  choice.addEventListener("change", show);
  show();
}

// What the page says of a row: its numbers, and between what they will be.
function numberOutcome(data, panel, scores) {
  const names = data.numbers.targets.map(({ name }) => name);
  const predicted = (found) => names.map((_, k) => (panel.isLogarithm ? Math.exp(found[k]) : found[k]));
  // Beside the scores there are logarithms of spreads, where these are not the same everywhere.
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
  const chart = element("ol", { class: "bars ranges", "aria-label": "Predictions, their intervals and the true numbers" });
  const told = element("p", { class: "legend" }, "bar: interval; line: prediction; ring: true number");
  const shown = (values) => names.map((name, k) => (names.length > 1 ? `${name} ${amount(values[k])}` : amount(values[k]))).join(", ");

  function mark(kind, share) {
    const made = element("span", { class: kind });
    made.style.left = `${100 * Math.min(Math.max(share, 0), 1)}%`;
    return made;
  }

  return {
    nodes: [verdict, chart, told],
    mistake: "next outside its interval",
    isMistake: (i) => isOutside[i],
    option: (i) => `row ${panel.numbers[i]}: ${shown(panel.labels[i])}, predicted ${shown(known[i])}`,
    limits: [],
    choose: () => {},
    update(found, chosen, moved) {
      const values = predicted(found), bounds = boundsOf(values, found), truth = panel.labels[chosen];
      chart.replaceChildren(...names.map((name, k) => {
        const share = scale(...spans[k], 0.03, 0.97);
        const track = element("span", { class: "track", "aria-hidden": "true" });
        if (bounds[k]) {
          const [from, to] = bounds[k].map((value) => Math.min(Math.max(share(value), 0), 1));
          const bar = element("span", { class: "bar" });
          bar.style.left = `${100 * from}%`;
          bar.style.width = `${100 * (to - from)}%`;
          track.append(bar);
        }
        track.append(mark("said", share(values[k])), mark("truth", share(truth[k])));
        return element("li", { class: "best", "data-score": found[k], "data-prediction": values[k], "data-lower": bounds[k] && bounds[k][0], "data-upper": bounds[k] && bounds[k][1] },
          element("span", { class: "name", title: name }, name), track, element("span", { class: "value" }, amount(values[k])));
      }));
      const before = shown(known[chosen]), now = shown(values);
      verdict.replaceChildren(names.length > 1 ? "The model says " : `${names[0]} is predicted to be `, element("strong", {}, now),
        now === before ? "" : `, before the change ${before}`,
        names.length === 1 && bounds[0] ? `, and ${percent(panel.coverage, 0)} of such rows are between ${amount(bounds[0][0])} and ${amount(bounds[0][1])}` : "",
        `. The row has ${shown(truth)}.`, moved.length ? ` Changed: ${moved.join(", ")}.` : "");
    },
  };
}
