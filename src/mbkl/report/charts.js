// Elements, numbers and charts. Text from the data only becomes text nodes, never HTML.

function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  return fill(made, attributes, children);
}

function svg(tag, attributes = {}, ...children) {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

function fill(made, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value !== null && value !== undefined) made.setAttribute(name, value);
  }
  made.append(...children.filter((child) => child !== null));
  return made;
}

function number(value, digits = 3) {
  if (value === null || Number.isNaN(value)) return "–";
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 1e6 || size < 1e-4) return value.toExponential(digits - 1);
  return String(Number(value.toPrecision(size >= 1000 ? Math.max(digits, 4) : digits))).replace("-", "−");
}

const signed = (value) => (value > 0 ? "+" : "") + number(value);
const percent = (value, digits = 1) => (value === null ? "–" : `${(100 * value).toFixed(digits)} %`);
const whole = (value) => value.toLocaleString("en");
const shorten = (text, length) => (text.length <= length ? text : `${text.slice(0, length - 1)}…`);

// Round numbers between two others.
function ticks(low, high, count) {
  const rough = (high - low) / Math.max(count, 1);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 5, 10].find((factor) => factor * power >= rough);
  const found = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; k += 1) found.push(k * step);
  return found.map((value) => Number(value.toPrecision(12)));
}

function scale(low, high, from, to) {
  const factor = high > low ? (to - from) / (high - low) : 0;
  return (value) => from + (value - low) * factor;
}

// Return a function that draws, and call it whenever the width changes.
function drawn(holder, draw, then = () => {}) {
  let width = 0;
  const redraw = () => {
    width = holder.clientWidth;
    if (width) holder.replaceChildren(draw(width));
    then();
  };
  new ResizeObserver(() => { if (holder.clientWidth !== width) redraw(); }).observe(holder);
  return redraw;
}

function axisBelow(x, { marks, text = number }, bottom) {
  return svg("g", { class: "axis", "aria-hidden": "true" }, ...marks.flatMap((value) => [
    svg("line", { x1: x(value), x2: x(value), y1: bottom, y2: bottom + 4 }),
    svg("text", { x: x(value), y: bottom + 16, "text-anchor": "middle" }, text(value)),
  ]));
}

function axisLeft(y, { marks, text = number }, left, right) {
  return svg("g", { class: "axis", "aria-hidden": "true" }, ...marks.flatMap((value) => [
    svg("line", { class: value === 0 ? "zero" : "grid", x1: left, x2: right, y1: y(value), y2: y(value) }),
    svg("text", { x: left - 6, y: y(value) + 4, "text-anchor": "end" }, text(value)),
  ]));
}

// A chart with axes, each with ends, ticks and a label; draw gets the scales and returns the contents.
// Without a fixed width it fills its container; a strip below is left free.
function chart({ width, height, left, xAxis, yAxis, below, label, isFluid = false, strip = 0, ...attributes }, draw) {
  const right = width - 10, top = 10, bottom = height - 38;
  const x = scale(...xAxis.ends, left, right), y = scale(...yAxis.ends, bottom - strip, top);
  const size = isFluid ? { viewBox: `0 0 ${width} ${height}` } : { width, height };
  return svg("svg", { ...size, role: "img", "aria-label": label, ...attributes },
    axisLeft(y, yAxis, left, right), axisBelow(x, xAxis, bottom), ...draw(x, y, { left, right, top, bottom }),
    svg("text", { class: "title", x: (left + right) / 2, y: height - 5, "text-anchor": "middle" }, below));
}

// An axis over some values, with a margin at either end.
function axisOver(values, room, count, text = number) {
  const low = Math.min(...values), high = Math.max(...values);
  const more = room * (high - low) || room * Math.abs(high) || 1;
  const ends = [low - more, high + more];
  return { ends, marks: ticks(...ends, count), text };
}

const pathThrough = (x, y, xs, ys) => xs.map((value, i) => `${i ? "L" : "M"}${x(value)} ${y(ys[i])}`).join("");
const dashed = (x, y, [fromX, fromY], [toX, toY]) => svg("line", { class: "cursor", x1: x(fromX), y1: y(fromY), x2: x(toX), y2: y(toY) });

// Formats values with the decimals that the largest needs for this number of digits.
function decimals(largest, digits) {
  const count = Math.min(Math.max(digits - 1 - Math.floor(Math.log10(largest || 1)), 0), 12);
  return (value) => value.toLocaleString("en", { minimumFractionDigits: count, maximumFractionDigits: count }).replace("-", "−");
}

// A mark on a track, from one share of its width to another.
function bar(from, to, kind = "bar") {
  const made = element("span", { class: kind });
  made.style.left = `${100 * from}%`;
  if (to > from) made.style.width = `${100 * (to - from)}%`;
  return made;
}

// A mark that goes from the middle to either side.
const diverging = (share, kind) => bar(Math.min(0.5, 0.5 + share / 2), Math.max(0.5, 0.5 + share / 2), kind);

// A row of a list of bars: a name, a track with marks, and a value.
const barLine = (name, marks, value) => [
  element("span", { class: "name", title: name }, name),
  element("span", { class: "track", "aria-hidden": "true" }, ...marks),
  element("span", { class: "value" }, value),
];

// Bars as a list; each may be a button.
function bars(rows, label, press = null) {
  const largest = Math.max(...rows.map((row) => row.value), 1e-300), write = decimals(largest, 3);
  return element("ol", { class: "bars", "aria-label": label }, ...rows.map((row) => {
    const parts = barLine(row.name, [bar(0, Math.max(row.value, 0) / largest)], write(row.value));
    if (!press) return element("li", {}, ...parts);
    return element("li", {}, element("button", { type: "button", onclick: () => press(row) }, ...parts));
  }));
}

// A list to choose from, with its name before it, if there is more than one item.
function choice(id, names, label, show) {
  const list = element("select", { id, onchange: show }, ...names.map((name) => element("option", {}, name)));
  return [list, names.length > 1 ? [element("label", { for: id }, label), list] : []];
}

// A table of figures; the first cell of a row is its heading. Long tables scroll.
function figureTable(label, heads, lines) {
  return element("div", { class: "scroll tall", tabindex: 0, role: "region", "aria-label": label },
    element("table", { class: "figures", "aria-label": label },
      element("thead", {}, element("tr", {}, ...heads.map((name) => element("th", { scope: "col" }, name)))),
      element("tbody", {}, ...lines.map(([first, ...others]) => element("tr", {}, element("th", { scope: "row" }, first),
        ...others.map((text) => element("td", {}, text)))))));
}

const legend = (names) => element("p", { class: "legend", "aria-hidden": "true" },
  ...names.map(([name, colour]) => element("span", { class: `key c${colour % 6}` }, shorten(name, 24))));

// A table whose cells are shaded by their values. On small screens it scrolls.
function heatTable(rowNames, columnNames, values, { label, corner, text, strength, mark = () => null }) {
  const head = element("tr", {}, element("td", { class: "corner" }, corner), ...columnNames.map((name) =>
    element("th", { scope: "col", title: name }, element("span", {}, shorten(name, 12)))));
  const body = values.map((line, i) => element("tr", {},
    element("th", { scope: "row", title: rowNames[i] }, rowNames[i]),
    ...line.map((value, j) => {
      const cell = element("td", { class: mark(i, j) }, text(value, i, j));
      const share = strength(value, i, j);
      cell.style.setProperty("--strength", share.toFixed(3));
      if (share > 0.62) cell.classList.add("strong");
      return cell;
    })));
  const table = element("table", { class: "heat", "aria-label": label }, element("thead", {}, head), element("tbody", {}, ...body));
  return element("figure", {}, element("figcaption", {}, label),
    element("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": label }, table));
}
