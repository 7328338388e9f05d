// Charts with axes: shape functions, curves of the probabilities and the path of a search.

// Days since 1970-01-01 as a date.
function date(days) {
  const when = new Date(Math.floor(days) * 86400000);
  return Number.isNaN(when.getTime()) ? number(days, 4) : when.toISOString().slice(0, 10);
}

const writers = { date, whole: (value) => number(value, 6), number: (value) => number(value, 4) };

// Three pictures of how good the probabilities of a class are.
function qualityCurves(section, curves) {
  const group = element("select", { id: "curve-class" }, ...curves.map((one) => element("option", {}, one.name)));
  const holder = element("div", { class: "columns quality" });
  const told = element("p", { class: "told" });
  section.append(element("h3", {}, "Probabilities"),
    ...(curves.length > 1 ? [element("div", { class: "controls" }, element("label", { for: "curve-class" }, "Class against the rest"), group)] : []),
    holder, told);

  function small(title, below, left, points, { diagonal, level, dots = false }) {
    const width = 290, height = 260, from = 42, to = width - 10, top = 10, bottom = height - 38;
    const x = scale(0, 1, from, to), y = scale(0, 1, bottom, top);
    const marks = [0, 0.25, 0.5, 0.75, 1];
    const line = points[0].map((value, i) => `${i ? "L" : "M"}${x(value)} ${y(points[1][i])}`).join("");
    const chart = svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `${title}: ${left}, by ${below}` },
      axisLeft(y, marks, from, to), axisBelow(x, marks, top, bottom),
      diagonal ? svg("line", { class: "cursor", x1: x(0), y1: y(0), x2: x(1), y2: y(1) }) : null,
      level === undefined ? null : svg("line", { class: "cursor", x1: x(0), y1: y(level), x2: x(1), y2: y(level) }),
      svg("path", { class: "curve c0", d: line }),
      ...(dots ? points[0].map((value, i) => svg("circle", { class: "dot c0", r: 4, cx: x(value), cy: y(points[1][i]) })) : []),
      svg("text", { class: "title", x: (from + to) / 2, y: height - 6, "text-anchor": "middle" }, below));
    return element("figure", {}, element("figcaption", {}, `${title}: ${left}`), chart);
  }

  function show() {
    const one = curves[Math.max(group.selectedIndex, 0)];
    holder.replaceChildren(
      small("ROC", "share of the others taken for it", "share of the class that is found", one.roc, { diagonal: true }),
      small("Precision and recall", "share of the class that is found", "share of those found that are right", one.precisionRecall, { level: one.share }),
      small("Reliability", "probability", "share of rows that are of the class", one.reliability, { diagonal: true, dots: true }));
    told.textContent = `${one.name}, ${percent(one.share)} of the rows: AUC ${one.auc.toFixed(3)}, mean precision ${one.averagePrecision.toFixed(3)}.`;
  }
  group.addEventListener("change", show);
  show();
}

// What each level of a category adds, by score.
function levelBars(shape, columns, names) {
  const lines = shape.levels.map((name, i) => ({ name, count: shape.counts[i], values: columns.map((column) => shape.values[column][i]) }));
  if (shape.missing) lines.push({ name: "missing", count: shape.missingCount, values: columns.map((column) => shape.missing[column]) });
  const largest = Math.max(...lines.flatMap((line) => line.values.map(Math.abs)), 1e-300);
  return element("ol", { class: "bars diverging levels", "aria-label": `What each level of ${shape.name} adds` }, ...lines.flatMap((line) =>
    line.values.map((value, k) => {
      const bar = element("span", { class: `bar c${columns[k] % 6}` });
      bar.style.width = `${(50 * Math.abs(value)) / largest}%`;
      bar.style.left = `${value < 0 ? 50 - (50 * Math.abs(value)) / largest : 50}%`;
      return element("li", { title: `${line.name}: ${whole(line.count)} rows; adds ${signed(value)} to ${names[columns[k]]}` },
        element("span", { class: "name" }, k ? "" : `${line.name} (${whole(line.count)})`),
        element("span", { class: "track", "aria-hidden": "true" }, bar),
        element("span", { class: "value" }, signed(value)));
    })));
}

function shapeFunctions(section, data) {
  const names = data.scores;
  const feature = element("select", { id: "shape-feature" }, ...data.shapes.map((shape) => element("option", {}, shape.name)));
  const group = element("select", { id: "shape-class" },
    names.length > 1 && names.length <= 6 ? element("option", { value: "all" }, data.numbers ? "all targets" : "all classes") : null,
    ...names.map((name, i) => element("option", { value: i }, name)));
  const holder = element("div", { class: "chart" });
  const cursor = element("input", { type: "range", min: 0, max: 200, value: 100, step: 1, "aria-label": "Value of the column" });
  const readout = element("p", { class: "readout" });
  const some = data.shapes.length < data.columns ? ` Here are the ${data.shapes.length} most important of ${whole(data.columns)}.` : "";
  section.append(
    element("p", {}, data.numbers ? `What the value of a column adds to ${names.length > 1 ? "a target" : names[0]}`
      : names.length > 1 ? "What the value of a column adds to the score of a class"
      : `What the value of a column adds to the score of ${names[0]} (and takes from that of ${data.classes.find((name) => name !== names[0])})`,
    ", on average over the other columns, and how many rows have such values.", some),
    element("div", { class: "controls" }, element("label", { for: "shape-feature" }, "Column"), feature,
      ...(names.length > 1 ? [element("label", { for: "shape-class" }, data.numbers ? "Target" : "Class"), group] : [])),
    holder, cursor, readout);

  let mark = () => {};
  const shape = () => data.shapes[feature.selectedIndex];
  const columns = () => (group.value === "all" ? names.map((_, i) => i) : [Number(group.value)]);

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
    // Whole numbers are beyond one edge, and up to the next.
    const ends = isWhole ? [Math.floor(edges[place]) + 1, Math.floor(edges[place + 1])] : [edges[place], edges[place + 1]];
    const [from, to] = ends.map(write);
    const range = place === 0 ? `up to ${to}` : place === counts.length - 1 ? `${isWhole ? "from" : "above"} ${from}${isWhole ? " on" : ""}`
      : from === to ? `with ${to}` : `from ${from} to ${to}`;
    const text = `${name} = ${write(value)} adds ${sums(values.map((line) => line[place]))}; ${whole(counts[place])} rows ${range}`;
    cursor.setAttribute("aria-valuetext", text);
    readout.textContent = `${text}.${missing ? ` A missing value (${whole(missingCount)} rows) adds ${sums(missing)}.` : ""}`;
    mark(value, place);
  }

  const legendOf = () => (columns().length > 1 ? element("p", { class: "legend", "aria-hidden": "true" }, ...columns().map((column) =>
    element("span", { class: `key c${column % 6}` }, shorten(names[column], 24)))) : null);

  const redraw = drawn(holder, (width) => {
    if (shape().kind === "category") {
      mark = () => {};
      return element("div", {}, legendOf(), levelBars(shape(), columns(), names));
    }
    const write = writers[shape().kind];
    const { edges, values, bins, density, name } = shape();
    const height = Math.min(340, Math.max(230, width * 0.45));
    const left = 52, right = width - 8, top = 10, bottom = height - 36, strip = 44;
    const shown = columns().map((column) => values[column]);
    const low = Math.min(...shown.flat(), 0), high = Math.max(...shown.flat(), 0);
    const room = 0.06 * (high - low) || 1;
    const x = scale(edges[0], edges[edges.length - 1], left, right);
    const y = scale(low - room, high + room, bottom - strip, top);
    const most = Math.max(...density, 1);
    const rows = density.map((count, i) => svg("rect", { x: x(bins[i]), width: Math.max(x(bins[i + 1]) - x(bins[i]), 0.5),
      y: bottom - (count / most) * (strip - 8), height: (count / most) * (strip - 8) }));
    const steps = columns().map((column) => {
      const line = values[column].map((value, i) => `${i ? "V" : `M${x(edges[0])} `}${y(value)}H${x(edges[i + 1])}`).join("");
      return svg("path", { d: line, class: `curve c${column % 6}` });
    });
    const rule = svg("line", { class: "cursor", y1: top, y2: bottom });
    const dots = columns().map((column) => svg("circle", { r: 4, class: `dot c${column % 6}` }));
    mark = (value, place) => {
      rule.setAttribute("x1", x(value));
      rule.setAttribute("x2", x(value));
      dots.forEach((dot, i) => { dot.setAttribute("cx", x(value)); dot.setAttribute("cy", y(values[columns()[i]][place])); });
    };
    const point = (event) => {
      const share = (event.clientX - holder.getBoundingClientRect().left - left) / (right - left);
      cursor.value = Math.round(200 * share);
      tell();
    };
    const chart = svg("svg", { width, height, role: "img", onpointermove: point, onpointerdown: point,
      "aria-label": `${name}: what it adds to ${columns().map((column) => scoreOf(data, names[column])).join(", ")}` },
    axisLeft(y, ticks(low - room, high + room, 5), left, right, amount), axisBelow(x, ticks(edges[0], edges[edges.length - 1], Math.max(width / (write === date ? 110 : 80), 4)), top, bottom, write === date ? date : number),
    svg("g", { class: "density" }, ...rows), ...steps, rule, ...dots,
    svg("text", { class: "title", x: (left + right) / 2, y: height - 4, "text-anchor": "middle" }, shorten(name, 60)));
    return element("div", {}, legendOf(), chart);
  }, tell);
  feature.addEventListener("change", redraw);
  group.addEventListener("change", redraw);
  cursor.addEventListener("input", tell);
  redraw();
}

function searchPath(section, path, write) {
  const keys = path.C.map((_, i) => JSON.stringify([path.CKernel[i], path.shrinkage[i], path.depth[i]]));
  const kernels = new Set(path.CKernel).size > 1, shrinkages = new Set(path.shrinkage).size > 1;
  const lines = [...new Set(keys)].map((key) => {
    const [CKernel, shrinkage, depth] = JSON.parse(key);
    const places = keys.map((own, i) => (own === key ? i : -1)).filter((i) => i >= 0).sort((a, b) => path.C[a] - path.C[b]);
    const label = [kernels ? `C_kernel ${number(CKernel)}` : null, shrinkages ? `shrinkage ${number(shrinkage)}` : null, depth === null ? null : `depth ${number(depth)}`].filter(Boolean).join(", ");
    return { label, places };
  });
  const holder = element("div", { class: "chart" });
  const title = `${path.scoring} of the folds`;
  section.append(element("p", {}, `${path.C.length} candidates were compared by cross-validation; `
    + `C = ${number(path.chosen.C)} was chosen, with a mean ${path.scoring} of ${write(path.chosen.score)}.`), holder);
  drawn(holder, (width) => {
    const height = 250, left = 60, right = width - 12, top = 12, bottom = height - 40;
    const logs = path.C.map(Math.log10);
    const x = scale(Math.min(...logs) - 0.1, Math.max(...logs) + 0.1, left, right);
    const low = Math.min(...path.score), high = Math.max(...path.score), room = 0.12 * (high - low) || 0.01;
    const y = scale(low - room, high + room, bottom, top);
    const costs = [...new Set(path.C)].sort((a, b) => a - b).map(Math.log10);
    const drawnLines = lines.flatMap(({ places }, i) => [
      svg("path", { class: `curve c${i % 6}`, d: places.map((place, k) => `${k ? "L" : "M"}${x(logs[place])} ${y(path.score[place])}`).join("") }),
      ...places.map((place) => svg("circle", { class: `dot c${i % 6}`, r: 4, cx: x(logs[place]), cy: y(path.score[place]) })),
    ]);
    const chosen = x(Math.log10(path.chosen.C));
    const chart = svg("svg", { width, height, role: "img", "aria-label": `${title} along the cost C; the table below has the figures` },
      axisLeft(y, ticks(low - room, high + room, 4), left, right, (value) => write(value)),
      axisBelow(x, costs, top, bottom, (value) => number(10 ** value)),
      svg("line", { class: "cursor", x1: chosen, x2: chosen, y1: top, y2: bottom }), ...drawnLines,
      svg("text", { class: "title", x: (left + right) / 2, y: height - 4, "text-anchor": "middle" }, "cost C (dashed: chosen)"));
    const legend = lines.length > 1 ? element("p", { class: "legend", "aria-hidden": "true" }, ...lines.map(({ label }, i) =>
      element("span", { class: `key c${i % 6}` }, label))) : null;
    return element("div", {}, legend, chart);
  })();
  const columns = ["C", "C_kernel", "shrinkage", "depth", path.scoring, "deviation", "maps kept"];
  section.append(element("details", {}, element("summary", {}, "All candidates"),
    element("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "All candidates" },
      element("table", { class: "figures", "aria-label": "All candidates" }, element("thead", {}, element("tr", {}, ...columns.map((name) => element("th", { scope: "col" }, name)))),
        element("tbody", {}, ...path.C.map((C, i) => element("tr", {}, ...[number(C), number(path.CKernel[i]), number(path.shrinkage[i]), number(path.depth[i]),
          write(path.score[i]), write(path.deviation[i]), whole(Math.round(path.maps[i]))].map((text) => element("td", {}, text)))))))));
}
