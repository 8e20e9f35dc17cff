// The data were unpacked from rows of numbers that stand for words (see `packed.py`).
const DATA = JSON.parse(byId("data").textContent);

function unpack(close) {
  const word = (i) => DATA.words[i], words = (list) => list.map(word);
  for (const block of close.blocks) {
    block.labels = words(block.labels);
    block.rows = block.rows.map(([what, name, kind, group, covers, cuts, lies, axes, reads, weights, size, start_s, took_s, bound, critical]) => ({
      what: word(what), name: word(name), kind: word(kind), group: word(group), covers: words(covers), cuts: words(cuts), lies: words(lies), axes, reads,
      weights: weights.map(([n, b]) => [word(n), b]), bytes: size, start_s, seconds: took_s, bound: word(bound), critical,
    }));
  }
  for (const lane of close.lanes) lane.spans = lane.spans.map(([label, kind, wave, start_s, end_s]) => ({ label: word(label), kind, wave, start_s, end_s }));
  return close;
}

const rowsOfTable = [...document.querySelectorAll("tr[data-point]")];
const chart = DATA.chart ? frontierChart(DATA.points, (index) => choosePoint(index)) : null;
const beside = h("div", {}), below = h("div", { class: "wordy" });
byId("frontier").append(chart ? h("div", { class: "top" }, h("div", { class: "card" }, chart.svg, h("p", { class: "note" }, "Each shape is a plan of its own. Arrow keys walk along the frontier.")), beside, below) : h("div", { class: "cards" }, beside, below));

function choosePoint(index) {
  const p = DATA.points[index];
  rowsOfTable.forEach((row, i) => { row.setAttribute("aria-current", i === index); row.tabIndex = i === index ? 0 : -1; });
  if (chart) chart.dots.forEach((dot, i) => { dot.setAttribute("aria-checked", i === index); dot.setAttribute("tabindex", i === index ? 0 : -1); });
  beside.replaceChildren(summary(p));
  below.replaceChildren(planCard(p));
  const parts = [];
  if (p.close) {
    const block = blockSection(p.close);
    parts.push(whySection(p), block.node, timelineSection(p, (kind) => { block.choose(kind); block.node.scrollIntoView({ block: "start" }); }), memorySection(p));
  } else parts.push(h("section", {}, h("h2", {}, "A closer look"), h("p", { class: "sub" }, "This point was not looked at closely: the work was interrupted before.")));
  byId("point").replaceChildren(...parts, boundSection(p));
  hideTip();
}

DATA.points.forEach((p) => { if (p.close) unpack(p.close); });
rowsOfTable.forEach((row, i) => row.addEventListener("click", () => choosePoint(i)));
walked(rowsOfTable, choosePoint);
const asked = /^#point-(\d+)$/.exec(location.hash);
choosePoint(asked && DATA.points[asked[1] - 1] ? asked[1] - 1 : DATA.first);
addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((each) => { each.open = true; }));
document.documentElement.dataset.ready = "yes";
