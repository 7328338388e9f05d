// What a report needs of a browser, so that its script runs in Node: elements, events and queries.
// Reads a line of JSON with {open: path} or {run: code}, and answers with {value} or {error}. What
// went wrong while a page handled an event is in `complaints`.

"use strict";

const fs = require("node:fs");
const vm = require("node:vm");
const readline = require("node:readline");

const camel = (name) => name.replace(/-(.)/g, (_, letter) => letter.toUpperCase());

class Element extends EventTarget {
  constructor(tag) {
    super();
    this.tagName = tag;
    this.attributes = {};
    this.childNodes = [];
    this.parent = null;
    this.chosen = null;
    this.clientWidth = 800;
    this.style = { setProperty(name, value) { this[name] = value; } };
    this.classList = {
      add: (name) => this.classList.toggle(name, true),
      toggle: (name, is) => {
        const names = new Set((this.attributes.class || "").split(" ").filter(Boolean));
        if (is) names.add(name); else names.delete(name);
        this.attributes.class = [...names].join(" ");
      },
    };
  }

  get children() { return this.childNodes.filter((child) => child instanceof Element); }
  get options() { return this.querySelectorAll("option"); }
  get dataset() {
    const own = Object.entries(this.attributes).filter(([name]) => name.startsWith("data-"));
    return Object.fromEntries(own.map(([name, value]) => [camel(name.slice(5)), value]));
  }
  get id() { return this.attributes.id || ""; }
  get text() { return this.textContent; }
  get textContent() { return this.childNodes.map((child) => (child instanceof Element ? child.textContent : child)).join(""); }
  set textContent(text) { this.replaceChildren(text); }
  get selectedIndex() { return this.options.length ? this.chosen ?? 0 : -1; }
  set selectedIndex(place) { this.chosen = place; }
  get value() {
    if (this.tagName !== "select") return this.attributes.value ?? "";
    const option = this.options[this.selectedIndex];
    return option ? option.attributes.value ?? option.textContent : "";
  }
  set value(value) { this.attributes.value = String(value); }
  setAttribute(name, value) { this.attributes[name] = String(value); }
  getAttribute(name) { return this.attributes[name] ?? null; }
  append(...children) {
    for (const child of children) {
      if (child instanceof Element) {
        child.remove();
        child.parent = this;
      }
      this.childNodes.push(child instanceof Element ? child : String(child));
    }
  }
  replaceChildren(...children) {
    this.childNodes = [];
    this.append(...children);
  }
  remove() {
    if (this.parent) this.parent.childNodes = this.parent.childNodes.filter((child) => child !== this);
  }
  click() { this.dispatchEvent(new Event("click")); }
  scrollIntoView() {}
  getBoundingClientRect() { return { left: 0, width: this.clientWidth }; }
  getContext() { return { putImageData() {} }; }
  *everyone() {
    for (const child of this.children) {
      yield child;
      yield* child.everyone();
    }
  }
  matches(selector) {
    return selector.match(/[#.]?[\w-]+|\[[^\]]+\]/g).every((part) => {
      if (part[0] === "#") return this.id === part.slice(1);
      if (part[0] === ".") return (this.attributes.class || "").split(" ").includes(part.slice(1));
      if (part[0] !== "[") return this.tagName === part;
      const [name, value] = part.slice(1, -1).split("=");
      return value === undefined ? name in this.attributes : this.attributes[name] === value;
    });
  }
  // Selectors are names, classes, ids and attributes, separated by spaces.
  querySelectorAll(selector) {
    const found = selector.split(" ").reduce((from, part) =>
      [...new Set(from.flatMap((each) => [...each.everyone()]))].filter((each) => each.matches(part)), [this]);
    return found;
  }
  querySelector(selector) { return this.querySelectorAll(selector)[0] ?? null; }
}

// The page as the template has it: no element is left open, and quotes are the same everywhere.
function parse(html) {
  const root = new Element("html");
  const open = [root];
  const void_ = new Set(["meta", "link", "img", "br"]);
  const pattern = /<(script|style)([^>]*)>([\s\S]*?)<\/\1>|<!doctype[^>]*>|<(\/?)([a-z0-9]+)([^>]*)>|([^<]+)/gi;
  for (const [, raw, rawAttributes, content, end, tag, attributes, text] of html.matchAll(pattern)) {
    if (text !== undefined) open.at(-1).append(text);
    else if (end) open.pop();
    else if (raw || tag) {
      const made = new Element((raw || tag).toLowerCase());
      for (const [, name, value] of (rawAttributes || attributes || "").matchAll(/([\w-]+)="([^"]*)"/g)) made.setAttribute(name, value);
      open.at(-1).append(made);
      if (raw) made.append(content);
      else if (!void_.has(made.tagName)) open.push(made);
    }
  }
  return root;
}

let context = null;
const complaints = [];
process.on("uncaughtException", (error) => complaints.push(String(error.stack || error)));

function openPage(path) {
  complaints.length = 0;
  const document = parse(fs.readFileSync(path, "utf8"));
  Object.assign(document, {
    documentElement: document,
    getElementById: (id) => document.querySelector(`#${id}`),
    createElement: (tag) => new Element(tag),
    createElementNS: (_, tag) => new Element(tag),
  });
  context = vm.createContext({
    document, Event, atob, complaints,
    ResizeObserver: class { observe() {} },
    ImageData: class { constructor(width, height) { this.data = new Uint8ClampedArray(4 * width * height); } },
    getComputedStyle: () => ({ getPropertyValue: () => "0, 0, 0" }),
    matchMedia: () => new EventTarget(),
  });
  for (const script of document.querySelectorAll("script")) {
    if (!script.getAttribute("type")) vm.runInContext(script.textContent, context);
  }
}

readline.createInterface({ input: process.stdin }).on("line", (line) => {
  const { open, run } = JSON.parse(line);
  let answer;
  try {
    answer = open ? { value: openPage(open) } : { value: vm.runInContext(run, context) };
  } catch (error) {
    answer = { error: String(error.stack || error) };
  }
  process.stdout.write(`${JSON.stringify(answer)}\n`);
});
