// charts.js - uPlot for the past, in the colours of the page, and a line of events above it.
//
//   ◆      ▲  ●          what happened, each where it did; the page lists the same in words
//   ╱╲____╱╲╱╲____       what was read and written meanwhile
/* global uPlot */
import { clock, compact, money, rates, weekOf, weekday } from "./model.js";

const LINES = {
  read: { label: "read", colour: "--read", fill: true }, written: { label: "written", colour: "--written" }, uncached: { label: "uncached", colour: "--uncached" },
  admitted: { label: "in", colour: "--in" }, done: { label: "done", colour: "--out", fill: true }, failed: { label: "tries failed", colour: "--written" }, dead: { label: "dead", colour: "--dead" },
  cost: { label: "paid", colour: "--in", fill: true }, avoidable: { label: "avoidable", colour: "--written" },
};

// What each range shows, and how its figures are told.
export const CHARTS = {
  hour: { tokens: { title: "Input tokens a minute", lines: ["read", "written", "uncached"], words: compact },
    jobs: { title: "Jobs a minute", lines: ["admitted", "done", "failed", "dead"], words: compact } },
  week: { tokens: { title: "Input tokens, hour by hour", lines: ["read", "written", "uncached"], words: compact },
    dollars: { title: "Dollars, hour by hour", lines: ["cost", "avoidable"], words: money } },
};

const charts = new Map();

// The library comes when the first chart is drawn: other views need not wait for it.
let library = null;
function load() {
  library = library || new Promise((resolve) => {
    const style = document.createElement("link"), script = document.createElement("script");
    style.rel = "stylesheet";
    style.href = "uPlot.min.css";
    script.src = "uPlot.iife.min.js";
    script.addEventListener("load", resolve);
    document.head.append(style, script);
  });
  return library;
}

function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

function axisWords(range) {
  return (u, values) => values.map((at) => range === "week" ? weekday(at * 1000) : u.scales.x.max - u.scales.x.min < 600 ? clock(at * 1000) : clock(at * 1000).slice(0, 5));
}

function options(range, kind, width, made) {
  const axis = { stroke: colour("--quiet"), grid: { stroke: colour("--line"), width: 1 }, ticks: { show: false }, font: "11px system-ui, sans-serif" };
  const { lines, words } = CHARTS[range][kind];
  const paths = range === "week" ? uPlot.paths.stepped({ align: 1 }) : undefined;
  // Nobody points at it: the last value.
  const last = (values) => values.reduce((found, value) => (value === null || value === undefined ? found : value), null);
  const told = (u, value, series, at) => { const it = at === null || at === undefined ? last(u.data[series]) : value; return it === null || it === undefined ? "–" : words(it); };
  return {
    width, height: 190, cursor: { y: false }, legend: { live: true },
    scales: { x: { time: true }, y: { range: (u, low, high) => [0, Math.max(high || 0, range === "week" && kind === "dollars" ? 0.01 : 1) * 1.08] } },
    axes: [{ ...axis, grid: { show: false }, space: 80, values: axisWords(range) }, { ...axis, size: 56, values: (u, values) => values.map(words) }],
    series: [{ label: "at", value: (u, at, series, index) => (index === null || index === undefined ? "now" : at ? range === "week" ? weekday(at * 1000, true) : clock(at * 1000) : "–") }, ...lines.map((name) => ({
      label: LINES[name].label, stroke: colour(LINES[name].colour), width: 2, paths, fill: LINES[name].fill ? `${colour(LINES[name].colour)}22` : undefined,
      points: { show: false }, value: told }))],
    hooks: { draw: [(u) => drawEvents(u, made)] },
  };
}

// Of events that would stand on top of each other, the one that says most.
const WEIGHT = { info: 0, placed: 1, version: 2, config: 3, notice: 3, spike: 4 };
const APART = 13; // pixels

function spread(u, events) {
  const shown = [];
  for (const event of [...events].sort((a, b) => WEIGHT[b.kind] - WEIGHT[a.kind] || b.at_ms - a.at_ms)) {
    const x = u.valToPos(event.at_ms / 1000, "x");
    if (x < 0 || x > u.bbox.width / devicePixelRatio) continue;
    const near = shown.find((one) => Math.abs(one.x - x) < APART);
    if (near) near.more += 1;
    else shown.push({ ...event, x, more: 0 });
  }
  return shown;
}

// The marks of the line are for the eye and the mouse: "What changed" has them for all.
function drawEvents(u, made) {
  const { ctx, bbox } = u, shown = spread(u, made.events), left = bbox.left / devicePixelRatio;
  made.lane.replaceChildren(...shown.map((event) => {
    const node = document.createElement("a");
    node.className = `mark ${event.kind}`;
    node.href = event.href;
    node.tabIndex = -1;
    node.title = `${weekday(event.at_ms, true)}  ${event.words}${event.more ? `, and ${event.more} more` : ""}`;
    node.style.left = `${left + event.x}px`;
    return node;
  }));
  ctx.save();
  ctx.setLineDash([3 * devicePixelRatio, 3 * devicePixelRatio]);
  for (const event of shown) {
    if (event.kind === "info") continue;
    const x = u.valToPos(event.at_ms / 1000, "x", true);
    ctx.strokeStyle = colour(`--mark-${event.kind}`);
    ctx.globalAlpha = event.kind === "spike" ? 0.9 : 0.5;
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
  }
  ctx.restore();
}

function dataOf(range, kind, history, ledger) {
  const { lines } = CHARTS[range][kind];
  if (range === "week") { // the hour that has begun, as far as it is
    const [times, ...columns] = weekOf(ledger, lines);
    return [[...times, ledger.now_ms / 1000], ...columns.map((column) => [...column, column[column.length - 1]])];
  }
  return [history.at_ms.slice(1).map((ms) => ms / 1000), ...lines.map((name) => rates(history.at_ms, history[name]))];
}

function make(place, range, kind, width, data, events, dark) {
  const made = { place, dark, events, lane: document.createElement("div") };
  made.lane.className = "lane";
  made.lane.setAttribute("aria-hidden", "true");
  place.replaceChildren(made.lane);
  made.plot = new uPlot(options(range, kind, width, made), data, place);
  return made;
}

// Fills each [data-keep="chart-…"] of the page; makes it anew if the colours changed.
export async function drawCharts(range, history, ledger, events) {
  if (range === "hour" && history.at_ms.length < 3) return;
  await load();
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  for (const kind of Object.keys(CHARTS[range])) {
    const name = `chart-${range}-${kind}`, place = document.querySelector(`[data-keep="${name}"]`);
    const chart = charts.get(name), data = dataOf(range, kind, history, ledger);
    if (!place) continue; // another view by now
    const width = Math.max(place.clientWidth, 240);
    if (chart && chart.place === place && chart.dark === dark) {
      chart.events = events;
      if (chart.plot.width !== width) chart.plot.setSize({ width, height: 190 });
      chart.plot.setData(data);
    } else {
      if (chart) chart.plot.destroy();
      charts.set(name, make(place, range, kind, width, data, events, dark));
    }
  }
}
