// One block as a rank runs it, from top to bottom: arcs say who reads whose output, the small grid how it lies over the
// mesh, and chips along which dim each axis of the mesh cuts the work.

const ROW = 46;
const STATES = ["replicated", "partial", "one rank"];

function blockSection(close) {
  const most = close.blocks.map((b) => b.rows.reduce((sum, r) => sum + r.seconds, 0) * b.labels.length);
  const tabs = close.blocks.map((b) => h("button", { role: "tab", "aria-selected": false, tabindex: -1 }, `${b.name}${b.labels.length > 1 ? " × " + b.labels.length : ""}`));
  const body = h("div", { role: "tabpanel" });
  const choose = (index) => {
    tabs.forEach((tab, i) => { tab.setAttribute("aria-selected", i === index); tab.tabIndex = i === index ? 0 : -1; });
    body.replaceChildren(...blockBody(close, close.blocks[index]).filter(Boolean));
  };
  tabs.forEach((tab, i) => tab.addEventListener("click", () => choose(i)));
  walked(tabs, choose);
  choose(most.indexOf(Math.max(...most)));
  const axes = close.axes.map((a) => `${a.name} of ${a.size} on ${a.levels.join(" and ") || "one GPU"}`).join(", ");
  const node = h("section", { id: "block", "aria-labelledby": "block-head" }, h("h2", { id: "block-head" }, "The block"),
    h("p", { class: "sub" }, "What one rank of each stage runs, in order, with the collectives between. " + (axes ? `Mesh axes: ${axes}. ` : "") + "Times are those of the run without what overlap hides."),
    h("div", { class: "tabs", role: "tablist", "aria-label": "kinds of block" }, tabs), body);
  return { node, choose };
}

function blockBody(close, block) {
  const used = new Set(block.rows.map((r) => classOf(r)));
  const total = Math.max(...block.rows.map((r) => r.start_s + r.seconds), 1e-300);
  const arcs = arcsOf(block.rows);
  const rows = block.rows.map((row, i) => rowOf(close, block, row, total, () => arcs.light(i)));
  walked(rows, () => {});
  rows.forEach((row, i) => { row.tabIndex = i ? -1 : 0; row.addEventListener("focus", () => rows.forEach((r) => { r.tabIndex = r === row ? 0 : -1; })); });
  const some = block.labels.length > 5 ? [...block.labels.slice(0, 3), "…", block.labels[block.labels.length - 1]] : block.labels;
  const labels = some.length > 1 ? `The first of ${some.join(", ")}.` : "";
  return [
    h("p", { class: "sub" }, `${seconds(total)} from first start to last end. ${labels}`),
    key([...Object.entries(PARTS)].filter(([name]) => used.has(name))),
    close.axes.length ? glyphKey() : null,
    key([["memory", "bar: waits for memory"], ["compute", "compute"], ["network", "network"], ["latency", "latency"]]),
    h("div", { class: "card flow" }, arcs.svg, h("div", { role: "list" }, rows)),
  ];
}

const classOf = (row) => (row.what === "kernel" ? partOf(row.group) : "network");

function rowOf(close, block, row, total, light) {
  const move = row.what !== "kernel", name = classOf(row), kind = row.kind.replaceAll("_", "-");
  const along = row.axes.map((a) => close.axes[a].name).join(", ");
  const node = h("div", { class: "row" + (move ? " move" : ""), role: "listitem", tabindex: -1, onpointerenter: light, onfocus: light },
    glyph(close.axes, row.lies),
    h("div", { class: "who b-" + name }, h("b", {}, move ? kind : row.name), h("span", {}, move ? `of ${row.name}${along ? " along " + along : ""}` : kind)),
    h("div", { class: "chips" }, move ? h("span", { class: "chip" }, bytes(row.bytes)) : chips(close.axes, row)),
    h("span", { class: "time" }, seconds(row.seconds)),
    h("span", { class: "bar", "aria-hidden": "true" }, h("i", { class: "c-" + boundClass(row.bound), "left%": row.start_s / total, "width%": row.seconds / total })));
  return tipped(node, rowWords(close, row));
}

function chips(axes, row) {
  if (!axes.length) return [];
  const size = new Map();
  row.cuts.forEach((word, axis) => { if (word) size.set(word, (size.get(word) || 1) * axes[axis].size); });
  if (!size.size) return [h("span", { class: "chip all" }, row.lies.every((l) => l === "one rank") ? "one rank" : "replicated")];
  return [...size].map(([word, parts]) => h("span", { class: "chip cut" }, `${word}→${parts}`));
}

function rowWords(close, row) {
  const lies = row.lies.map((l, axis) => `${close.axes[axis].name}: ${l}`).join(", ");
  const weights = row.weights.map(([name, size]) => `${name} ${bytes(size)}`).join(", ");
  return [
    row.what === "kernel" ? `${row.name}: ${row.kind}` : `${row.kind.replaceAll("_", "-")} of ${row.name}`,
    row.covers.length > 1 ? `fused: ${row.covers.join(" + ")}` : "",
    `output on one rank: ${bytes(row.bytes)}${lies ? "; " + lies : ""}`,
    weights ? `resident: ${weights}` : "",
    `${seconds(row.seconds)}, waits for ${row.bound}${row.critical ? "; on the critical path" : ""}`,
  ].filter(Boolean).join("\n");
}

function glyphKey() {
  const axis = [{ size: 4 }], words = { cut: "each rank has a slice", replicated: "each has all of it", partial: "each has a summand", "one rank": "one has it" };
  return h("div", { class: "key" }, Object.entries(words).map(([lies, word]) => h("span", {}, glyph(axis, [lies]), word)), h("span", {}, "(what a row makes, over the ranks of a stage)"));
}

// How a value lies over the ranks: full where replicated, one slice where cut, pale where partial, one cell where only
// the first has it. The last two axes are drawn, up to eight coordinates of each; a dim that both cut is cut in one way.
function glyph(axes, lies) {
  const shown = axes.slice(-2).map((a, i) => ({ size: Math.min(a.size, 8), lies: lies[axes.length - Math.min(2, axes.length) + i] }));
  while (shown.length < 2) shown.unshift({ size: 1, lies: "replicated" });
  const [outer, inner] = shown, wide = Math.min(60 / inner.size, 15), tall = Math.min(38 / outer.size, 15);
  const node = s("svg", { width: wide * inner.size, height: 38, viewBox: `0 0 ${wide * inner.size} 38`, "aria-hidden": "true" });
  const y0 = (38 - tall * outer.size) / 2, part = (axis, at) => (STATES.includes(axis.lies) ? [0, 1] : [at / axis.size, 1 / axis.size]);
  const same = outer.lies === inner.lies && !STATES.includes(inner.lies), ranks = outer.size * inner.size;
  for (let r = 0; r < outer.size; r++) for (let c = 0; c < inner.size; c++) {
    const x = c * wide, y = y0 + r * tall, w = wide - 1.5, high = tall - 1.5;
    const [above, depth] = same ? [(r * inner.size + c) / ranks, 1 / ranks] : part(inner, c), [left, breadth] = same ? [0, 1] : part(outer, r);
    node.append(s("rect", { x: x + 0.5, y, width: w, height: high, fill: "none", stroke: "var(--line)" }));
    const none = (outer.lies === "one rank" && r > 0) || (inner.lies === "one rank" && c > 0);
    const partial = outer.lies === "partial" || inner.lies === "partial";
    if (!none) node.append(s("rect", { x: x + 0.5 + left * w, y: y + above * high, width: Math.max(breadth * w, 1.6), height: Math.max(depth * high, 2.4), fill: "var(--accent)", opacity: partial ? 0.38 : 1 }));
  }
  return node;
}

// Arcs in the gutter, from the row that makes a value to those that read it, but for the next row.
function arcsOf(rows) {
  const width = 44, svg = s("svg", { width, height: rows.length * ROW, viewBox: `0 0 ${width} ${rows.length * ROW}`, "aria-hidden": "true" }), drawn = [];
  const middle = (i) => i * ROW + ROW / 2;
  rows.forEach((row, to) => row.reads.forEach((from) => {
    const x = width - 5, reach = from < 0 ? 0 : Math.min(8 + 4.5 * (to - from - 1), width - 8);
    const d = from < 0 ? `M${x - 14} ${middle(to) - 12}L${x} ${middle(to)}` : to - from === 1 ? `M${x} ${middle(from)}V${middle(to)}`
      : `M${x} ${middle(from)}C${x - reach * 1.3} ${middle(from)} ${x - reach * 1.3} ${middle(to)} ${x} ${middle(to)}`;
    const arc = s("path", { class: "arc", d });
    drawn.push([from, to, arc]);
    svg.append(arc);
  }));
  rows.forEach((row, i) => svg.append(s("circle", { cx: width - 5, cy: middle(i), r: 3, class: "c-" + classOf(row) })));
  const light = (i) => drawn.forEach(([from, to, arc]) => arc.classList.toggle("on", from === i || to === i));
  return { svg, light };
}
