// The frontier: throughput over interactivity. Both scales are logarithmic where the points span a decade or more.

const CHART = { width: 720, height: 400, left: 62, right: 20, top: 16, bottom: 46 };
const SHAPES = ["M0-6A6 6 0 1 0 0 6A6 6 0 1 0 0-6Z", "M-5.5-5.5H5.5V5.5H-5.5Z", "M0-7L6.5 5H-6.5Z", "M0-7.5L7.5 0L0 7.5L-7.5 0Z"];

function scale(values, from, to) {
  let low = Math.min(...values), high = Math.max(...values);
  const log = low > 0 && high / low >= 8;
  if (log) { low /= 1.25; high *= 1.25; } else { const pad = (high - low) * 0.08 || high * 0.1; low = Math.max(0, low - pad); high += pad; }
  const f = log ? Math.log10 : (x) => x, a = f(low), b = f(high);
  const place = (x) => from + ((f(x) - a) / (b - a)) * (to - from);
  return { place, log, ticks: log ? logTicks(low, high) : linearTicks(low, high) };
}
function logTicks(low, high) {
  const out = [], decades = Math.log10(high / low);
  const leads = decades < 1.6 ? [1, 2, 3, 5, 7] : decades < 3.2 ? [1, 2, 5] : [1];
  for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); power++)
    for (const lead of leads) { const x = lead * 10 ** power; if (x >= low && x <= high) out.push(x); }
  return out;
}
function linearTicks(low, high) {
  const rough = (high - low) / 5, power = 10 ** Math.floor(Math.log10(rough));
  const step = power * ([1, 2, 5, 10].find((m) => m * power >= rough) || 10), out = [];
  for (let x = Math.ceil(low / step) * step; x <= high; x += step) out.push(x);
  return out;
}

function frontierChart(points, choose) {
  const { width, height, left, right, top, bottom } = CHART;
  const x = scale(points.map((p) => p.tok_s_user), left, width - right), y = scale(points.map((p) => p.tok_s_gpu), height - bottom, top);
  const words = points.length + " points: throughput per GPU over tokens per second for each user";
  const svg = s("svg", { viewBox: `0 0 ${width} ${height}`, role: "radiogroup", "aria-label": words });
  for (const value of x.ticks) svg.append(s("line", { class: "grid", x1: x.place(value), x2: x.place(value), y1: top, y2: height - bottom }),
    s("text", { class: "soft", x: x.place(value), y: height - bottom + 17, "text-anchor": "middle" }, tick(value)));
  for (const value of y.ticks) svg.append(s("line", { class: "grid", x1: left, x2: width - right, y1: y.place(value), y2: y.place(value) }),
    s("text", { class: "soft", x: left - 8, y: y.place(value) + 4, "text-anchor": "end" }, tick(value)));
  svg.append(s("text", { x: (left + width - right) / 2, y: height - 8, "text-anchor": "middle" }, "interactivity, tok/s/user →"),
    s("text", { transform: `translate(13 ${(top + height - bottom) / 2}) rotate(-90)`, "text-anchor": "middle" }, "throughput, tok/s/GPU →"));
  const places = points.map((p) => [x.place(p.tok_s_user), y.place(p.tok_s_gpu)]);
  svg.append(s("path", { class: "curve", d: places.map(([a, b], i) => (i ? `H${a}V${b}` : `M${a} ${b}`)).join("") }));
  const dots = points.map((p, i) => tipped(s("g", { class: "dot", role: "radio", tabindex: -1, transform: `translate(${places[i]})`, "aria-label": pointWords(p), onclick: () => choose(i) },
    s("circle", { class: "hit", r: 14 }), s("path", { d: SHAPES[(p.plan_number - 1) % SHAPES.length] })), pointWords(p)));
  const labels = labelled(points, places);
  svg.append(...labels, ...walked(dots, choose));
  return { svg, dots };
}

// The batch beside each point, on the side where there is room, and left out where there is none.
function labelled(points, places) {
  const taken = places.map(([x, y]) => [x - 7, y - 7, x + 7, y + 7]), out = [];
  points.forEach((p, i) => {
    const words = "batch " + p.batch_text, wide = 6.4 * words.length, [x, y] = places[i];
    for (const [left, low] of [[x + 10, y - 7], [x - 10 - wide, y - 7], [x - 10 - wide, y + 15], [x + 10, y + 15]]) {
      const box = [left, low - 10, left + wide, low + 3];
      if (box[0] < CHART.left || box[2] > CHART.width || box[3] > CHART.height - CHART.bottom) continue;
      if (taken.some((t) => box[0] < t[2] && box[2] > t[0] && box[1] < t[3] && box[3] > t[1])) continue;
      taken.push(box);
      out.push(s("text", { class: "soft", x: left, y: low, "aria-hidden": "true" }, words));
      break;
    }
  });
  return out;
}

function pointWords(p) {
  return [
    `batch ${p.batch_text}, mesh ${p.mesh_text}` + (p.pp > 1 ? `, ${p.pp} stages` : "") + (DATA.sizes ? `, ${p.gpus} GPUs` : ""),
    `${rate(p.tok_s_gpu)} tok/s/GPU, ${rate(p.tok_s_user)} tok/s/user`,
    `bottleneck: ${p.bottleneck}`,
    `memory: ${bytes(p.peak_bytes)} of ${bytes(p.capacity_bytes)}`,
    `plan ${p.plan_number}: ` + p.plan.map(([group, cut]) => (group ? group + ": " : "") + cut).join("; "),
  ].join("\n");
}

function summary(p) {
  const share = p.peak_bytes / p.capacity_bytes;
  return h("div", { class: "card", id: "summary", "aria-live": "polite" },
    h("h3", {}, p.label || (DATA.points.length > 1 ? `Point ${p.number} of ${DATA.points.length}` : "One step")),
    h("div", { class: "big" },
      h("div", {}, h("b", {}, rate(p.tok_s_gpu)), "tok/s/GPU"), h("div", {}, h("b", {}, rate(p.tok_s_user)), "tok/s/user"),
      h("div", {}, h("b", {}, seconds(p.step_s)), p.pp > 1 ? "slowest stage" : "step"),
      p.usd === null ? null : h("div", {}, h("b", {}, "$" + Number(p.usd.toPrecision(4))), "per million tokens")),
    h("dl", {},
      h("dt", {}, "batch"), h("dd", {}, `${count(p.batch)} ${p.batch === 1 ? "request" : "requests"} on ${p.gpus} ${p.gpus === 1 ? "GPU" : "GPUs"}`),
      h("dt", {}, "mesh"), h("dd", {}, p.mesh_text + (p.pp > 1 ? `, ${p.pp} stages of ${p.layers_text} layers` : "")),
      h("dt", {}, "bottleneck"), h("dd", {}, p.bottleneck),
      h("dt", {}, "gap"), h("dd", {}, p.gap === null ? "no bound was computed" : gap(p.gap) + " above the bound"),
      h("dt", {}, "memory"), h("dd", {}, `${bytes(p.peak_bytes)} of ${bytes(p.capacity_bytes)}, ${percent(share, 0)}`),
      h("dt", {}, "found by"), h("dd", {}, p.origin)));
}

function planCard(p) {
  return h("div", { class: "card wordy" }, h("h3", {}, `Plan ${p.plan_number} in words`),
    h("dl", {}, p.plan.map(([group, cut]) => h("div", {}, h("dt", {}, group || "also"), h("dd", {}, cut)))));
}
