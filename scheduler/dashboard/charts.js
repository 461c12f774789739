// charts.js - uPlot for the past, in the colours of the page.
/* global uPlot */
import { clock, rates } from "./model.js";

const SERIES = {
  tokens: { title: "Tokens a minute", lines: [["read", "--read", "read"], ["written", "--written", "written"], ["uncached", "--uncached", "uncached"]] },
  jobs: { title: "Jobs a minute", lines: [["admitted", "--in", "in"], ["done", "--out", "done"], ["dead", "--dead", "dead"]] },
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

function short(value) {
  return value >= 1e6 ? `${+(value / 1e6).toFixed(1)} M` : value >= 1e3 ? `${+(value / 1e3).toFixed(1)} k` : String(+value.toFixed(1));
}

function options(kind, width, marks) {
  const axis = { stroke: colour("--quiet"), grid: { stroke: colour("--line"), width: 1 }, ticks: { show: false }, font: "11px system-ui, sans-serif" };
  return {
    width, height: 190, cursor: { y: false }, legend: { live: true },
    scales: { x: { time: true }, y: { range: (u, low, high) => [0, Math.max(high || 0, 1) * 1.08] } },
    axes: [{ ...axis, grid: { show: false }, space: 90, values: (u, values) => values.map((at) => clock(at * 1000)) }, { ...axis, size: 56, values: (u, values) => values.map(short) }],
    series: [{ label: "at", value: (u, at) => (at ? clock(at * 1000) : "–") }, ...SERIES[kind].lines.map(([, name, label]) => ({
      label, stroke: colour(name), width: 2, fill: label === "read" || label === "done" ? `${colour(name)}22` : undefined,
      points: { show: false }, value: (u, value) => (value === null || value === undefined ? "–" : short(value)) }))],
    hooks: { draw: [(u) => drawMarks(u, marks())] },
  };
}

// What happened, as thin lines from the top: the page lists them below.
function drawMarks(u, notes) {
  const { ctx, bbox } = u;
  ctx.save();
  for (const note of notes) {
    const x = u.valToPos(note.at_ms / 1000, "x", true);
    if (x < bbox.left || x > bbox.left + bbox.width) continue;
    ctx.strokeStyle = colour(note.level === "info" ? "--quiet" : "--held");
    ctx.globalAlpha = note.level === "info" ? 0.35 : 0.9;
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + (note.level === "info" ? 8 : bbox.height) * 1);
    ctx.stroke();
  }
  ctx.restore();
}

function dataOf(kind, history) {
  const times = history.at_ms;
  return [times.slice(1).map((ms) => ms / 1000), ...SERIES[kind].lines.map(([name]) => rates(times, history[name]))];
}

// Fills each [data-keep="chart-…"] of the page; makes it anew if the colours changed.
export async function drawCharts(history, notes) {
  if (history.at_ms.length < 3) return;
  await load();
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  for (const kind of Object.keys(SERIES)) {
    const place = document.querySelector(`[data-keep="chart-${kind}"]`);
    let chart = charts.get(kind);
    if (!place) continue; // another view by now
    if (chart && (chart.place !== place || chart.dark !== dark)) {
      chart.plot.destroy();
      chart = null;
    }
    const width = Math.max(place.clientWidth, 240);
    if (!chart) {
      const made = { place, dark, notes };
      place.replaceChildren();
      made.plot = new uPlot(options(kind, width, () => made.notes), dataOf(kind, history), place);
      charts.set(kind, made);
      continue;
    }
    chart.notes = notes;
    if (chart.plot.width !== width) chart.plot.setSize({ width, height: 190 });
    chart.plot.setData(dataOf(kind, history));
  }
}
