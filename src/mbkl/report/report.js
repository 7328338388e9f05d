// The sections of the page, filled from the data.

const measuredOn = { new: "new rows", folds: "rows held out in cross-validation", "held out": "rows held out", training: "training rows" };
const howMeasured = {
  new: "Measured on new rows, which the model has not seen.",
  folds: "Measured by cross-validation: each part of the rows is predicted by a model that has learned from the others.",
  "held out": "Measured on a fifth of the rows, by a model that has learned from the others.",
  training: "Measured on the rows that the model learned from: on new rows it will be worse.",
};

function classCards({ accuracy, classes }) {
  return [
    [percent(accuracy.accuracy), `accuracy on ${whole(accuracy.rows)} ${measuredOn[accuracy.how]}`],
    [percent(accuracy.always_the_most_frequent), "by always saying the largest class"],
    ...(accuracy.auc === undefined ? [] : [[accuracy.auc.toFixed(3), classes.length > 2 ? "AUC, mean of one class against the rest" : "AUC"]]),
    ...(accuracy.log_loss === undefined ? [] : [[accuracy.log_loss.toFixed(3), "log loss"], [accuracy.brier_score.toFixed(3), "Brier score"]]),
    [whole(classes.length), "classes"],
  ];
}

function classLead({ accuracy }) {
  return `${percent(accuracy.accuracy)} of ${whole(accuracy.rows)} `
    + `${measuredOn[accuracy.how]} are classified correctly; always saying the largest class is right for ${percent(accuracy.always_the_most_frequent)}.`;
}

function classQuality(section, data) {
  const { classes, confusion, confusionClasses, curves } = data.accuracy;
  const some = confusionClasses.length < classes.length;
  const totals = confusion.map((line) => line.reduce((a, b) => a + b, 0) || 1);
  section.append(element("div", { class: "columns" },
    heatTable(confusionClasses, confusionClasses, confusion, {
      label: `Confusion matrix: rows by their class, columns by what the model says${some
        ? `; the ${confusionClasses.length} of ${classes.length} classes with the most errors` : ""}`,
      corner: "class",
      text: (value) => (value ? whole(value) : ""),
      // Errors are few, so small counts get darker shades.
      strength: (value, i, j) => (i === j ? value / totals[i] : Math.sqrt(value / totals[i])),
      mark: (i, j) => (i === j ? "right" : "wrong"),
    }),
    element("figure", {}, element("figcaption", {}, "Precision: how many rows that are called so are. Recall: how many of the class are found."),
      figureTable("Precision and recall of each class", ["class", "precision", "recall", "rows"],
        classes.map((line) => [line.label, percent(line.precision), percent(line.recall), whole(line.rows)])))));
  if (curves.length) qualityCurves(section, curves);
}

const sections = {
  summary(section, data) {
    const cards = [
      ...(data.numbers ? numberCards : classCards)(data),
      [whole(data.rows), "training rows"],
      [whole(data.columns), "columns"],
    ];
    section.append(element("ul", { class: "cards" }, ...cards.map(([value, text]) =>
      element("li", {}, element("strong", {}, value), element("span", {}, text)))));
    section.append(...data.notes.map((note) => element("p", { class: "note" }, note)));
    section.append(element("dl", { class: "facts" }, ...data.facts.map(([name, value]) =>
      element("div", {}, element("dt", {}, name), element("dd", {}, value)))));
    document.getElementById("lead").textContent = (data.numbers ? numberLead : classLead)(data);
  },

  accuracy(section, data) {
    const { how } = data.numbers || data.accuracy;
    section.append(element("p", how === "training" ? { class: "note" } : {}, howMeasured[how]));
    (data.numbers ? numberQuality : classQuality)(section, data);
  },

  importances(section, data) {
    const found = data.importances;
    const some = found.names.length < data.columns;
    const rows = found.names.map((name, i) => ({ name, value: found.values[i],
      shape: data.shapes.findIndex((shape) => shape.column === found.columns[i]) }));
    const press = (row) => {
      if (row.shape < 0) return;
      const select = document.getElementById("shape-feature");
      select.selectedIndex = row.shape;
      select.dispatchEvent(new Event("change"));
      document.getElementById("shapes").scrollIntoView();
    };
    section.append(element("p", {}, `By how much a column changes ${data.numbers ? data.scores.join(", ") : "a score"} on average, over ${whole(found.rows)} rows`,
      some ? `: the ${found.names.length} most important of ${whole(data.columns)} columns.` : ".",
      data.shapes.length ? " Press one to see what it adds." : ""));
    section.append(bars(rows, "Importance of the columns", data.shapes.length ? press : null));
    const strongest = Math.max(...found.pairs.flat(), 0);
    if (strongest > 0) {
      const text = decimals(strongest, 2);
      section.append(element("h3", {}, "Together"), heatTable(found.pairNames, found.pairNames, found.pairs, {
        label: "How much two columns tell together beyond what each tells alone, in the same units",
        corner: "",
        text: (value, i, j) => (i === j ? "" : text(value)),
        strength: (value) => value / strongest,
      }));
    }
    for (const pair of found.together) {
      const most = Math.max(...pair.values.flat().map(Math.abs)) || 1;
      const write = data.numbers ? decimals(most, 3) : (value) => value.toFixed(2).replace("-", "−");
      section.append(heatTable(pair.rows, pair.columns, pair.values, {
        label: `What ${pair.names[0]} (down) and ${pair.names[1]} (across) add together to ${scoreOf(data, pair.score)}, on average over the other columns`,
        corner: "",
        text: write,
        strength: (value) => (0.9 * Math.abs(value)) / most,
        mark: (i, j) => (pair.values[i][j] < 0 ? "wrong" : null),
      }));
    }
    if (found.sets.length) {
      const which = found.sets.length < found.setCount ? `The ${found.sets.length} most important of ${whole(found.setCount)} sets` : "Sets";
      section.append(element("details", {}, element("summary", {}, `${which} of columns that are asked about together`),
        bars(found.sets, "Importance of sets of columns")));
    }
  },

  shapes(section, data) {
    if (data.shapes.length) shapeFunctions(section, data);
    else section.remove();
  },

  "what-if": whatIf,

  kernel(section, data) {
    const { names, counts, shades, low, high, same, different } = data.kernel;
    const size = counts.reduce((a, b) => a + b, 0);
    const [kind, group, groups] = data.numbers ? [data.numbers.targets[0].name, "fifth", "fifths"] : ["class", "class", "classes"];
    const canvas = element("canvas", { width: size, height: size, role: "img",
      "aria-label": `Kernel matrix of ${size} rows sorted by ${kind}` });
    const values = unpack(shades);
    const paint = () => {
      const style = getComputedStyle(document.documentElement);
      const [from, to] = ["--heat-low", "--heat-high"].map((name) => style.getPropertyValue(name).split(",").map(Number));
      const image = new ImageData(size, size);
      values.forEach((shade, i) => {
        const colour = from.map((start, k) => start + ((to[k] - start) * shade) / 255);
        image.data.set([...colour, 255], 4 * i);
      });
      canvas.getContext("2d").putImageData(image, 0, 0);
    };
    paint();
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", paint);
    let start = 0;
    const labels = element("div", { class: "kernel-labels", "aria-hidden": "true" });
    const lines = element("div", { class: "kernel-lines", "aria-hidden": "true" });
    counts.forEach((count, i) => {
      const label = element("span", { title: names[i] }, count >= size / 30 ? shorten(names[i], 20) : "");
      label.style.flexGrow = count;
      labels.append(label);
      start += count;
      if (i + 1 < counts.length && counts.length <= 40) {
        for (const side of ["top", "left"]) {
          const line = element("i", { class: side });
          line.style[side] = `${(100 * start) / size}%`;
          lines.append(line);
        }
      }
    });
    section.append(
      element("p", {}, "Each two rows agree on some of the binary maps: this is the share of the weight of those maps, for ",
        `${size} training rows sorted by ${kind}.`, same !== null && different !== null
          ? ` Rows of the same ${group} agree on ${percent(same)} in the mean, rows of different ${groups} on ${percent(different)}.` : ""),
      element("div", { class: "kernel" }, labels, element("div", { class: "kernel-picture" }, canvas, lines)),
      element("p", { class: "legend" }, number(low), element("span", { class: "ramp", "aria-hidden": "true" }), number(high)));
  },

  path(section, data) {
    if (data.path) searchPath(section, data.path, data.numbers ? amount : percent);
    else section.remove();
  },

  timings(section, { timings: { total, ...stages } }) {
    if (!total) return section.remove();  // a loaded model has no timings
    const rest = total - Object.values(stages).reduce((sum, value) => sum + value, 0);
    if (rest > 0.01 * total) stages["everything else"] = rest;
    const rows = Object.entries(stages).map(([name, value]) => ({ name, value }));
    return section.append(element("p", {}, `Seconds of each stage of the fit, ${number(total)} in all.`), bars(rows, "Seconds of each stage"));
  },
};

const page = JSON.parse(document.getElementById("data").textContent);
for (const [id, show] of Object.entries(sections)) show(document.getElementById(id), page);
document.getElementById("sections").append(...Array.from(document.querySelectorAll("section"), (section) =>
  element("li", {}, element("a", { href: `#${section.id}` }, section.querySelector("h2").textContent))));
