// Elements are made with text nodes only: nothing that a file or a model names is ever parsed as markup.
const SVG = "http://www.w3.org/2000/svg";

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "width%") node.style.width = (100 * value).toFixed(3) + "%";
    else if (name === "left%") node.style.left = (100 * value).toFixed(3) + "%";
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  for (const child of children.flat(3)) if (child !== null && child !== undefined) node.append(child);
  return node;
}
const h = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
const s = (tag, attributes, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);
const byId = (id) => document.getElementById(id);

// -- numbers, as the terminal shows them ------------------------------------------------------------------------------

function quantity(value, units) {
  const [name, scale] = units.find(([, least]) => Math.abs(value) >= least) || units[units.length - 1];
  const scaled = value / scale;
  const text = Math.abs(scaled) >= 1e4 ? Math.round(scaled).toLocaleString("en-US") : String(Number(scaled.toPrecision(4)));
  return text + " " + name;
}
const seconds = (value) => quantity(value, [["s", 1], ["ms", 1e-3], ["µs", 1e-6], ["ns", 1e-9]]);
const bytes = (value) => quantity(value, [["PB", 1e15], ["TB", 1e12], ["GB", 1e9], ["MB", 1e6], ["kB", 1e3], ["B", 1]]);
const rate = (value) => {
  const digits = value >= 1000 ? 1 : value >= 100 ? 2 : 3;
  return value.toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits });
};
const percent = (value, digits = 1) => (value > 0 && value < 0.0005 ? "<0.1%" : (100 * value).toFixed(digits) + "%");
const gap = (value) => (100 * value).toFixed(2) + "%";
const count = (value) => value.toLocaleString("en-US");
const tick = (value) => (value >= 1e6 ? value / 1e6 + "M" : value >= 1e3 ? value / 1e3 + "K" : String(Number(value.toPrecision(3))));

// -- a tip beside what is pointed at or has the focus -----------------------------------------------------------------

function showTip(node, text) {
  const tip = byId("tip"), at = node.getBoundingClientRect();
  tip.textContent = text;
  tip.hidden = false;
  const left = Math.min(Math.max(8, at.left + at.width / 2 - tip.offsetWidth / 2), innerWidth - tip.offsetWidth - 8);
  const above = at.top - tip.offsetHeight - 8;
  tip.style.left = left + scrollX + "px";
  tip.style.top = (above > 4 ? above : at.bottom + 8) + scrollY + "px";
}
const hideTip = () => { byId("tip").hidden = true; };
function tipped(node, text) {
  node.addEventListener("pointerenter", () => showTip(node, text));
  node.addEventListener("focus", () => showTip(node, text));
  node.addEventListener("pointerleave", hideTip);
  node.addEventListener("blur", hideTip);
  return node;
}
document.addEventListener("keydown", (event) => { if (event.key === "Escape") hideTip(); });

// Arrow keys walk through a row of things of which one can be reached by Tab; Enter does what a click does.
function walked(nodes, choose, enter = choose) {
  nodes.forEach((node, index) => node.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    const to = event.key === "Home" ? 0 : event.key === "End" ? nodes.length - 1 : step ? index + step : -1;
    if (event.key === "Enter" || event.key === " ") enter(index);
    else if (to >= 0 && to < nodes.length) { choose(to); nodes[to].focus(); }
    else return;
    event.preventDefault();
  }));
  return nodes;
}

// -- colours, each with a word beside it ------------------------------------------------------------------------------

const PARTS = { attention: "attention", ffn: "FFN and experts", routing: "routing", head: "head", other: "everything else", network: "collectives" };
const partOf = (group) => DATA.parts[group] || "other";
const boundClass = (bound) => (["compute", "memory", "latency"].includes(bound) ? bound : "network");
const key = (entries) => h("div", { class: "key" }, entries.map(([name, word]) => h("span", {}, h("i", { class: "c-" + name }), word)));

function bars(entries) {
  const most = Math.max(...entries.map((entry) => entry.value), 1e-300);
  return h("div", { class: "bars" }, entries.map((entry) => [
    h("span", { class: "name" }, entry.name),
    h("span", { class: "bar", "aria-hidden": "true" }, entry.value / (entry.of || most) > 1e-4 ? h("i", { class: entry.class || "c-accent", "width%": entry.value / (entry.of || most) }) : null),
    h("span", { class: "value" }, entry.text),
  ]));
}
