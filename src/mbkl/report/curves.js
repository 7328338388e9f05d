// Charts with axes: shape functions, curves of the probabilities and the path of a search.

// Days since 1970-01-01 as a date.
function date(days) {
  const when = new Date(Math.floor(days) * 86400000);
  return Number.isNaN(when.getTime()) ? number(days, 4) : when.toISOString().slice(0, 10);
}

const writers = { date, whole: (value) => number(value, 6), number: (value) => number(value, 4) };

// ROC, precision and recall, and reliability of the probabilities of a class.
function qualityCurves(section, curves) {
  const [list, controls] = choice("curve-class", curves.map((one) => one.label), "Class against the rest", show);
  const holder = element("div", { class: "columns quality" });
  const told = element("p", { class: "told" });
  section.append(element("h3", {}, "Probabilities"), element("div", { class: "controls" }, ...controls), holder, told);

  function small(title, below, left, [xs, ys], from, to, hasDots = false) {
    const axis = { ends: [0, 1], marks: [0, 0.25, 0.5, 0.75, 1] };
    const label = `${title}: ${left}, by ${below}`;
    return element("figure", {}, element("figcaption", {}, `${title}: ${left}`),
      chart({ width: 290, height: 260, left: 42, xAxis: axis, yAxis: axis, below, label, isFluid: true }, (x, y) => [
        dashed(x, y, from, to), svg("path", { class: "curve c0", d: pathThrough(x, y, xs, ys) }),
        ...(hasDots ? xs.map((value, i) => svg("circle", { class: "dot c0", r: 4, cx: x(value), cy: y(ys[i]) })) : [])]));
  }

  function show() {
    const one = curves[Math.max(list.selectedIndex, 0)];
    holder.replaceChildren(
      small("ROC", "share of the others taken for it", "share of the class that is found", one.roc, [0, 0], [1, 1]),
      small("Precision and recall", "share of the class that is found", "share of those found that are right", one.precision_recall, [0, one.share], [1, one.share]),
      small("Reliability", "probability", "share of rows that are of the class", one.reliability, [0, 0], [1, 1], true));
    told.textContent = `${one.label}, ${percent(one.share)} of the rows: AUC ${one.auc.toFixed(3)}, mean precision ${one.average_precision.toFixed(3)}.`;
  }
  show();
}

// Contributions of the levels of a category to each score.
function levelBars(shape, columns, names) {
  const lines = shape.levels.map((name, i) => ({ name, count: shape.counts[i], values: columns.map((column) => shape.values[column][i]) }));
  if (shape.missing) lines.push({ name: "missing", count: shape.missingCount, values: columns.map((column) => shape.missing[column]) });
  const largest = Math.max(...lines.flatMap((line) => line.values.map(Math.abs)), 1e-300);
  return element("ol", { class: "bars diverging levels", "aria-label": `What each level of ${shape.name} adds` }, ...lines.flatMap((line) =>
    line.values.map((value, k) => element("li", { title: `${line.name}: ${whole(line.count)} rows; adds ${signed(value)} to ${names[columns[k]]}` },
      ...barLine(k ? "" : `${line.name} (${whole(line.count)})`, [diverging(value / largest, `bar c${columns[k] % 6}`)], signed(value))))));
}

function shapeFunctions(section, data) {
  const names = data.scores;
  const [feature, controls] = choice("shape-feature", data.shapes.map((shape) => shape.name), "Column", () => redraw());
  const all = names.length > 1 && names.length <= 6 ? [data.numbers ? "all targets" : "all classes"] : [];
  const [group, groupControls] = choice("shape-class", [...all, ...names], data.numbers ? "Target" : "Class", () => redraw());
  const holder = element("div", { class: "chart" });
  const cursor = element("input", { type: "range", min: 0, max: 200, value: 100, step: 1, "aria-label": "Value of the column", oninput: tell });
  const readout = element("p", { class: "readout" });
  const some = data.shapes.length < data.columns ? ` Here are the ${data.shapes.length} most important of ${whole(data.columns)}.` : "";
  section.append(
    element("p", {}, data.numbers ? `What the value of a column adds to ${names.length > 1 ? "a target" : names[0]}`
      : names.length > 1 ? "What the value of a column adds to the score of a class"
      : `What the value of a column adds to the score of ${names[0]} (and takes from that of ${data.classes.find((name) => name !== names[0])})`,
    ", on average over the other columns, and how many rows have such values.", some),
    element("div", { class: "controls" }, ...controls, ...groupControls), holder, cursor, readout);

  let mark = () => {};
  const shape = () => data.shapes[feature.selectedIndex];
  const columns = () => {
    const chosen = Math.max(group.selectedIndex, 0) - all.length;
    return chosen < 0 ? names.map((_, i) => i) : [chosen];
  };
  const sums = (values) => columns().map((column) => `${signed(values[column])} to ${names[column]}`).join(", ");

  function tell() {
    const { kind, edges, values, counts, name, missing, missingCount } = shape();
    cursor.hidden = kind === "category";
    readout.hidden = kind === "category";
    if (kind === "category") return;
    const write = writers[kind];
    const [low, high] = [edges[0], edges[edges.length - 1]];
    const between = low + (cursor.value / 200) * (high - low);
    const isWhole = kind === "whole";
    const value = isWhole ? Math.min(Math.max(Math.round(between), Math.ceil(low)), Math.floor(high)) : between;
    const place = Math.max(edges.findIndex((edge) => edge >= value) - 1, 0);
    // An interval excludes its lower edge and includes its upper edge.
    const ends = isWhole ? [Math.floor(edges[place]) + 1, Math.floor(edges[place + 1])] : [edges[place], edges[place + 1]];
    const [from, to] = ends.map(write);
    const range = place === 0 ? `up to ${to}` : place === counts.length - 1 ? `${isWhole ? "from" : "above"} ${from}${isWhole ? " on" : ""}`
      : from === to ? `with ${to}` : `from ${from} to ${to}`;
    const text = `${name} = ${write(value)} adds ${sums(values.map((line) => line[place]))}; ${whole(counts[place])} rows ${range}`;
    cursor.setAttribute("aria-valuetext", text);
    readout.textContent = `${text}.${missing ? ` A missing value (${whole(missingCount)} rows) adds ${sums(missing)}.` : ""}`;
    mark(value, place);
  }

  function steps(width) {
    const { kind, edges, values, bins, density, name } = shape();
    const ends = [edges[0], edges[edges.length - 1]], isDate = kind === "date";
    const most = Math.max(...density, 1), strip = 44;
    const text = isDate ? date : number;
    let area = null;
    const point = (event) => {
      const share = (event.clientX - holder.getBoundingClientRect().left - area.left) / (area.right - area.left);
      cursor.value = Math.round(200 * share);
      tell();
    };
    return chart({
      width, height: Math.min(340, Math.max(230, width * 0.45)), left: 52, strip, onpointermove: point, onpointerdown: point,
      xAxis: { ends, marks: ticks(...ends, Math.max(width / (isDate ? 110 : 80), 4)), text },
      yAxis: axisOver([0, ...columns().flatMap((column) => values[column])], 0.06, 5, amount), below: shorten(name, 60),
      label: `${name}: what it adds to ${columns().map((column) => scoreOf(data, names[column])).join(", ")}`,
    }, (x, y, around) => {
      area = around;
      const rule = svg("line", { class: "cursor", y1: area.top, y2: area.bottom });
      const dots = columns().map((column) => svg("circle", { r: 4, class: `dot c${column % 6}` }));
      mark = (value, place) => {
        rule.setAttribute("x1", x(value));
        rule.setAttribute("x2", x(value));
        dots.forEach((dot, i) => { dot.setAttribute("cx", x(value)); dot.setAttribute("cy", y(values[columns()[i]][place])); });
      };
      return [
        svg("g", { class: "density" }, ...density.map((count, i) => svg("rect", { x: x(bins[i]), width: Math.max(x(bins[i + 1]) - x(bins[i]), 0.5),
          y: area.bottom - (count / most) * (strip - 8), height: (count / most) * (strip - 8) }))),
        ...columns().map((column) => svg("path", { class: `curve c${column % 6}`,
          d: values[column].map((value, i) => `${i ? "V" : `M${x(edges[0])} `}${y(value)}H${x(edges[i + 1])}`).join("") })),
        rule, ...dots];
    });
  }

  const redraw = drawn(holder, (width) => {
    mark = () => {};
    return element("div", {}, columns().length > 1 ? legend(columns().map((column) => [names[column], column])) : null,
      shape().kind === "category" ? levelBars(shape(), columns(), names) : steps(width));
  }, tell);
  redraw();
}

function searchPath(section, path, write) {
  const holder = element("div", { class: "chart" }), logs = path.C.map(Math.log10);
  section.append(element("p", {}, `${path.C.length} candidates were compared by cross-validation; `
    + `C = ${number(path.chosen.C)} was chosen, with a mean ${path.scoring} of ${write(path.chosen.score)}.`), holder);
  drawn(holder, (width) => {
    const xAxis = { ends: [Math.min(...logs) - 0.1, Math.max(...logs) + 0.1], marks: [...new Set(logs)].sort((a, b) => a - b), text: (value) => number(10 ** value) };
    const yAxis = axisOver(path.score, 0.12, 4, (value) => write(value));
    const label = `${path.scoring} of the folds along the cost C; the table below has the figures`;
    return element("div", {}, path.lines.length > 1 ? legend(path.lines.map(({ label: name }, i) => [name, i])) : null,
      chart({ width, height: 250, left: 60, xAxis, yAxis, below: "cost C (dashed: chosen)", label }, (x, y) => [
        dashed(x, y, [Math.log10(path.chosen.C), yAxis.ends[0]], [Math.log10(path.chosen.C), yAxis.ends[1]]),
        ...path.lines.flatMap(({ places }, i) => [
          svg("path", { class: `curve c${i % 6}`, d: pathThrough(x, y, places.map((place) => logs[place]), places.map((place) => path.score[place])) }),
          ...places.map((place) => svg("circle", { class: `dot c${i % 6}`, r: 4, cx: x(logs[place]), cy: y(path.score[place]) }))])]));
  })();
  section.append(element("details", {}, element("summary", {}, "All candidates"),
    figureTable("All candidates", ["C", "C_kernel", "shrinkage", "depth", path.scoring, "deviation", "maps kept"],
      path.C.map((C, i) => [number(C), number(path.CKernel[i]), number(path.shrinkage[i]), number(path.depth[i]),
        write(path.score[i]), write(path.deviation[i]), whole(Math.round(path.maps[i]))]))));
}
