// Why a step takes as long, when each class of ranks runs which block, what fills the memory, and the bound.

function whySection(p) {
  const e = p.close.explanation, most = Math.max(0.1, ...e.what_if.map((w) => w.gain));
  const hidden = p.overlap === "perfect" ? ` Perfect overlap hides part of it: ${seconds(p.step_s)} remain.` : "";
  return h("section", { id: "why", "aria-labelledby": "why-head" }, h("h2", { id: "why-head" }, "Why a step takes that long"),
    h("p", { class: "sub" }, `Critical path of the slowest stage: ${seconds(e.path_s)}, operators one after the other.${hidden}`),
    h("div", { class: "cards" },
      h("div", { class: "card" }, h("h3", {}, "Waiting for"), bars(e.by_bound.map((b) => ({ name: b.name, value: b.share, of: 1, class: "c-" + boundClass(b.name), text: `${seconds(b.seconds)}  ${percent(b.share)}` })))),
      h("div", { class: "card", id: "what-if" }, h("h3", {}, "What if … were 10% better"), bars(e.what_if.map((w) => ({ name: w.change, value: w.gain, of: most, class: whatClass(w.change), text: Math.abs(w.gain) < 5e-4 ? "–" : (w.gain > 0 ? "+" : "") + percent(w.gain) }))),
        h("p", { class: "note" }, "Growth of throughput, each thing alone.")),
      h("div", { class: "card" }, h("h3", {}, "Longest operators, all layers together"), bars(e.by_operator.slice(0, 10).map((o) => ({ name: o.name, value: o.share, text: `${seconds(o.seconds)}  ${percent(o.share)}` }))))));
}
const whatClass = (change) => "c-" + (change.startsWith("HBM") ? "memory" : change.endsWith("peak") ? "compute" : change === "latencies" ? "latency" : "network");

function timelineSection(p, chooseBlock) {
  const close = p.close, lanes = close.lanes, total = Math.max(...close.lanes.flatMap((l) => l.spans.map((x) => x.end_s)));
  const waves = Math.max(...close.lanes.flatMap((l) => l.spans.map((x) => x.wave))) + 1, bar = 20, lane = bar * waves + 10;
  const width = 1120, left = 190, height = lanes.length * lane + 34, at = (t) => left + (t / total) * (width - left - 8);
  const svg = s("svg", { viewBox: `0 0 ${width} ${height}`, width, role: "group", "aria-label": `when each of ${lanes.length} classes of ranks runs which block` });
  for (const value of linearTicks(0, total)) svg.append(s("line", { class: "grid", x1: at(value), x2: at(value), y1: 0, y2: height - 24 }), s("text", { class: "soft", x: at(value), y: height - 8, "text-anchor": at(value) > width - 40 ? "end" : "middle" }, value ? seconds(value) : "0"));
  const spans = lanes.flatMap((l, row) => {
    svg.append(s("text", { x: 0, y: row * lane + lane / 2 + 4 }, short(l.name, 19) + ` ×${l.ranks}`));
    return l.spans.map((x) => {
      const half = waves > 1 ? `, half ${x.wave + 1}` : "", took = seconds(x.end_s - x.start_s);
      const words = `${x.label || "outside of blocks"}${half}\n${seconds(x.start_s)} to ${seconds(x.end_s)}: ${took}\n${l.name}, ${l.ranks} ranks`;
      const place = { x: at(x.start_s), y: row * lane + 4 + x.wave * bar, width: Math.max(at(x.end_s) - at(x.start_s), 0.8), height: bar, rx: 1.5 };
      const draw = () => chooseBlock(x.kind);
      return { draw, node: tipped(s("rect", { class: "span", role: "button", tabindex: -1, "aria-label": words, fill: tone(x.kind), onclick: draw, ...place }), words) };
    });
  });
  const nodes = walked(spans.map((x) => x.node), () => {}, (i) => spans[i].draw());
  nodes[0].setAttribute("tabindex", 0);
  svg.append(...nodes);
  return h("section", { id: "timeline", "aria-labelledby": "timeline-head" }, h("h2", { id: "timeline-head" }, "Timeline by class of ranks"),
    h("p", { class: "sub" }, `One step through all stages. Equal ranks share a lane. ${p.overlap === "perfect" ? "Shown is the run without overlap, of which perfect overlap is a projection. " : ""}A click on a block, or Enter, draws it above.` + (close.lanes_more ? ` ${close.lanes_more} more classes are left out.` : "")),
    h("div", { class: "key" }, close.blocks.map((b, i) => h("span", {}, s("svg", { width: 12, height: 12 }, s("rect", { width: 12, height: 12, rx: 3, fill: tone(i) })), `${b.name}${b.labels.length > 1 ? " × " + b.labels.length : ""}`))),
    h("div", { class: "card wide" }, svg), close.stages.length > 1 ? stageTable(p) : null);
}
const TONES = ["--other", "--attention", "--latency", "--routing", "--network", "--ffn"];
const tone = (kind) => `var(${TONES[kind % TONES.length]})`;
const short = (text, most) => (text.length > most ? text.slice(0, most - 1) + "…" : text);

// Successive stages of equal figures share a row.
function stageTable(p) {
  const rows = [];
  p.close.stages.forEach((x, i) => {
    const cells = [String(p.layers[i]), seconds(x.span_s), seconds(x.local_s), seconds(x.exposed_s), bytes(x.peak_bytes)];
    const last = rows[rows.length - 1];
    if (last && last.cells.join() === cells.join()) last.to = i;
    else rows.push({ from: i, to: i, cells });
  });
  const body = rows.map((r) => h("tr", {}, [r.to > r.from ? `${r.from}–${r.to}` : String(r.from), ...r.cells].map((text) => h("td", {}, text))));
  return h("div", { class: "wide" }, h("table", {}, h("thead", {}, h("tr", {}, ["stage", "layers", "time", "local", "network", "peak memory"].map((text) => h("th", { scope: "col" }, text)))), h("tbody", {}, body)));
}

const ROLES = { weights: "attention", "KV cache": "ffn", state: "routing", activations: "head" };
function memorySection(p) {
  const close = p.close, sums = new Map();
  close.held.forEach((x) => sums.set(x.role, (sums.get(x.role) || 0) + x.bytes));
  const free = Math.max(0, p.capacity_bytes - p.peak_bytes), roles = Object.keys(ROLES).filter((role) => sums.get(role));
  const rest = close.held.slice(14).reduce((sum, x) => sum + x.bytes, 0);
  const entries = close.held.slice(0, 14).map((x) => ({ name: x.name + (x.count > 1 ? ` × ${x.count}` : ""), value: x.bytes, class: "c-" + ROLES[x.role], text: `${bytes(x.bytes)}  ${percent(x.bytes / p.peak_bytes)}` }));
  if (rest) entries.push({ name: `${close.held.length - 14} more`, value: rest, class: "c-other", text: `${bytes(rest)}  ${percent(rest / p.peak_bytes)}` });
  return h("section", { id: "memory", "aria-labelledby": "memory-head" }, h("h2", { id: "memory-head" }, "Memory by tensor"),
    h("p", { class: "sub" }, `${close.memory} at its peak: ${bytes(p.peak_bytes)} of ${bytes(p.capacity_bytes)} on each GPU; layers added up.`),
    h("div", { class: "stack", role: "img", "aria-label": roles.map((role) => `${role} ${bytes(sums.get(role))}`).join(", ") + `, free ${bytes(free)}` },
      roles.map((role) => h("i", { class: "c-" + ROLES[role], "width%": sums.get(role) / p.capacity_bytes }))),
    key([...roles.map((role) => [ROLES[role], `${role} ${bytes(sums.get(role))}`]), ["free", `free ${bytes(free)}`]]),
    h("div", { class: "card" }, bars(entries)));
}

function boundSection(p) {
  const known = p.bound_s !== null;
  return h("section", { id: "bound", "aria-labelledby": "bound-head" }, h("h2", { id: "bound-head" }, "Bound and gap"),
    h("p", { class: "sub" }, known ? `No plan in the scope of the bound has a step shorter than ${seconds(p.bound_s)}: this one is ${gap(p.gap)} above. Scope: ${p.bound_scope}.` : "No bound was computed: the layout was given, or found by a way of searching that has none."),
    known ? h("div", { class: "card" }, bars([{ name: "step", value: p.step_s, text: seconds(p.step_s) }, { name: "bound", value: p.bound_s, class: "c-other", text: seconds(p.bound_s) }])) : null);
}
