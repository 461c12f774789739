// app.js - which view is shown, what feeds it, and what a click does.
//
//   hash ──► view ──► read its paths ──► show ──► patch the page
//                         ▲
//   events (one a second, sent by the scheduler to all pages at once)
//
// A page that nobody looks at asks for nothing.
import { h, render } from "./dom.js";
import * as model from "./model.js";
import { familyActions } from "./families.js";
import { eventsOf, rangeOf } from "./overview.js";
import { VIEWS } from "./views.js";
import { drawCharts } from "./charts.js";

const MENU = ["overview", "families", "routes", "places", "workers", "jobs", "dead"];
const SLOW_MS = 4000; // between two reads of what Redis has to be asked for

const $ = (id) => document.getElementById(id);
const app = { at: null, live: null, data: null, session: null, error: "", cut: false, source: null, reading: false, again: false, readMs: 0, heardMs: 0 };

// ---- the API -------------------------------------------------------------------------

const token = {
  get: () => sessionStorage.getItem("warmq-token") || "",
  set: (value) => (value ? sessionStorage.setItem("warmq-token", value) : sessionStorage.removeItem("warmq-token")),
};

async function ask(path, options) {
  const headers = { ...(options && options.headers) };
  if (token.get()) headers.Authorization = `Bearer ${token.get()}`;
  const answer = await fetch(`api/v1/${path}`, { ...options, headers });
  const body = await answer.json().catch(() => ({ error: `status ${answer.status}` }));
  if (!answer.ok) throw Object.assign(new Error(body.error || `status ${answer.status}`), { status: answer.status });
  return body;
}

// A path, or [path, how long its answer will do, "maybe": null if there is none,
// "empty": { wrong: … } if the question was not one].
const kept = new Map();
async function read(wanted) {
  const [path, ms, maybe] = Array.isArray(wanted) ? wanted : [wanted, 0];
  const last = kept.get(path);
  if (last && Date.now() - last.at < ms) return last.answer;
  const answer = await ask(path).catch((error) => {
    if (maybe && error.status === 404) return null;
    if (maybe === "empty" && error.status === 400) return { wrong: error.message };
    throw error;
  });
  if (ms) {
    if (kept.size > 20) kept.clear();
    kept.set(path, { at: Date.now(), answer });
  }
  return answer;
}

const may = () => app.session && !app.session.read_only && Boolean(token.get());

// ---- showing -------------------------------------------------------------------------

function showNav() {
  const current = VIEWS[app.at.view] && VIEWS[app.at.view].parent || app.at.view;
  render($("nav"), MENU.map((name) => h("a", { href: `#/${name}`, "aria-current": name === current ? "page" : null },
    VIEWS[name].title, name === "dead" && app.live && app.live.counts.dead_letters > 0 ? h("span", { class: "count" }, model.compact(app.live.counts.dead_letters)) : null)));
  const here = $("nav").querySelector("[aria-current]");
  if (here && app.navAt !== current) $("nav").scrollLeft = here.offsetLeft - $("nav").clientWidth / 2 + here.clientWidth / 2; // where they do not all fit
  app.navAt = current;
}

// A read that got no answer says it at once; silence, after a while.
const isLate = () => app.cut || (Boolean(app.live) && Date.now() - app.heardMs > 5000);

function showState() {
  const live = app.live;
  const late = isLate();
  const parts = [];
  if (!live || late) parts.push(h("span", { class: "badge stuck" }, h("span", { class: "dot" }), "no news from the scheduler"));
  else if (live.phase !== "ruling") parts.push(h("span", { class: "badge budget" }, h("span", { class: "dot" }), live.phase === "down" ? "Redis is away" : live.phase));
  else parts.push(h("span", { class: "badge go" }, h("span", { class: "dot" }), "live"));
  if (live) {
    const words = live.hold ? "Holding on" : "Holding off";
    parts.push(app.session && app.session.read_only ? h("span", { class: `switch ${live.hold ? "on" : "off"}` }, words)
      : h("button", { type: "button", class: `switch ${live.hold ? "on" : "off"}`, role: "switch", "aria-checked": String(live.hold), "data-do": "hold" }, h("span", { class: "knob", "aria-hidden": "true" }), words));
  }
  if (app.session && !app.session.read_only)
    parts.push(h("button", { type: "button", class: "plain", "data-do": "token" }, may() ? "Lock" : "Unlock actions"));
  else if (app.session) parts.push(h("span", { class: "quiet" }, "read-only"));
  render($("state"), parts);
}

function showFoot() {
  const live = app.live;
  render($("foot"), live ? [h("span", {}, `${model.grouped(live.counts.families)} ${live.counts.families === 1 ? "family" : "families"} in memory`), h("span", {}, `inbox lag ${model.duration(live.inbox_lag_ms)}`),
    live.counts.corrections ? h("span", { class: "red" }, `${model.grouped(live.counts.corrections)} corrections`) : null,
    app.session ? h("span", {}, `namespace ${app.session.namespace}`) : null, app.session ? h("span", {}, `version ${app.session.version}`) : null,
    h("a", { href: "api/v1/overview" }, "JSON"), h("button", { type: "button", class: "plain", "data-do": "help" }, "Keys (?)")] : []);
}

// Old figures that look like new ones are worse than none.
function lateBox() {
  app.late = isLate();
  return app.late ? h("div", { class: "why stuck" }, h("strong", {}, `No news from the scheduler${app.live ? ` since ${model.clock(app.heardMs)}` : ""}`),
    h("p", {}, `${app.data ? "What is shown is from then. " : ""}Has it ended, or is the network gone? The page tries again by itself.`)) : null;
}

// Who does not rule knows nothing of what waits: no figures are better than zeros.
function phaseBox(phase, view) {
  if (phase === "ruling") return null;
  if (phase === "standing by")
    return h("div", { class: "why budget" }, h("strong", {}, "This scheduler stands by"),
      h("p", {}, "Another one rules, and only that one knows what waits, what is warm and what is paid: open its page. This one takes over within 10 s if the other ends."),
      view.fromRedis ? null : h("p", {}, "What stands in Redis is shown here, too: ", h("a", { href: "#/workers" }, "pools and workers"), ", ", h("a", { href: "#/jobs" }, "jobs"), ", ", h("a", { href: "#/dead" }, "dead letters"), "."));
  const words = { down: ["Redis is away", "Nothing is admitted until it answers again; what runs goes on, and workers keep its results. What is shown is what was known before."],
    asking: ["Redis is asked who rules", "That takes a moment."], reaping: ["This scheduler takes over", "It looks for jobs of workers that are gone."],
    rebuilding: ["This scheduler takes over", "It reads from Redis what waits and what is warm; figures are still too small."], stopped: ["This scheduler is stopping", "Another one takes over."] }[phase];
  return h("div", { class: "why budget" }, h("strong", {}, words ? words[0] : `This scheduler does not rule: ${phase}`), h("p", {}, words ? words[1] : "What is shown is what it remembers."));
}

function show() {
  const view = VIEWS[app.at.view];
  showNav();
  showState();
  showFoot();
  if (!view) {
    render($("main"), h("h1", {}, "There is no such view"), h("p", {}, h("a", { href: "#/overview" }, "Overview")));
    return;
  }
  document.title = `${app.at.id ? `${app.at.id.slice(0, 20)} · ` : ""}${view.title} · WarmQ`;
  if (app.error) {
    render($("main"), h("div", { class: "heading" }, h("h1", {}, view.title)), h("div", { class: "why stuck" }, h("strong", {}, "This cannot be shown"), h("p", {}, app.error)));
    return;
  }
  if (!app.data || !app.live) {
    if (app.cut) render($("main"), h("div", { class: "heading" }, h("h1", {}, view.title)), lateBox());
    return;
  }
  const knows = app.live.phase !== "standing by" || view.fromRedis;
  render($("main"), lateBox(), phaseBox(app.live.phase, view), knows ? view.show(app.at, app.data, app.live, may(), app.session) : h("div", { class: "heading" }, h("h1", {}, view.title)));
  if (app.at.view === "overview" && knows) drawCharts(rangeOf(app.at), app.data.history, app.data.ledger, eventsOf(app.data.ledger));
  performance.mark("warmq-data");
}

// ---- reading -------------------------------------------------------------------------

async function readView() {
  const at = app.at, view = VIEWS[at.view];
  if (!view) return show();
  const entries = Object.entries(view.read(at));
  try {
    const answers = await Promise.all(entries.map(([, path]) => read(path)));
    if (at !== app.at) return undefined; // somebody has gone on
    app.data = Object.fromEntries(entries.map(([name], index) => [name, answers[index]]));
    app.error = "";
    app.cut = false;
  } catch (error) {
    if (at !== app.at) return undefined;
    app.error = error.status ? error.message : "";
    app.cut = !error.status;
  }
  app.readMs = app.cut ? 0 : Date.now(); // the next event asks at once
  return show();
}

// One read at a time; what comes meanwhile is one more.
async function refresh() {
  if (app.reading) {
    app.again = true;
    return;
  }
  app.reading = true;
  do {
    app.again = false;
    await readView();
  } while (app.again);
  app.reading = false;
}

function onOverview(live) {
  app.live = live;
  app.heardMs = Date.now();
  const view = VIEWS[app.at.view];
  if (view && view.slow && app.data && Date.now() - app.readMs < SLOW_MS) show();
  else refresh();
}

function listen() {
  if (app.source || document.hidden) return;
  app.source = new EventSource("api/v1/events");
  app.source.addEventListener("overview", (event) => onOverview(JSON.parse(event.data)));
}

function onVisibility() {
  if (!document.hidden) return listen();
  if (app.source) app.source.close();
  app.source = null;
  return undefined;
}

// ---- acting --------------------------------------------------------------------------

let toastTimer = 0;
function toast(words, bad) {
  $("toast").textContent = words;
  $("toast").className = bad ? "show bad" : "show";
  clearTimeout(toastTimer);
  toastTimer = setTimeout(() => { $("toast").className = ""; }, 6000);
}

// Resolves with what was typed, or true; null if it was closed.
function dialog(title, inside, yes, danger) {
  const box = $("dialog");
  render(box, h("form", { method: "dialog" }, h("h2", { id: "dialog-title" }, title), inside,
    h("div", { class: "actions" }, h("button", { type: "button", "data-do": "close" }, yes ? "Not now" : "Close"), yes ? h("button", { value: "yes", class: danger ? "danger" : "primary" }, yes) : null)));
  box.returnValue = "";
  box.showModal();
  return new Promise((resolve) => {
    box.addEventListener("close", () => {
      const field = box.querySelector("input");
      resolve(box.returnValue === "yes" ? (field ? field.value : true) : null);
    }, { once: true });
  });
}

// One of several: what can be done now, and why the rest cannot.  Resolves with it, or null.
function choice(title, options) {
  const box = $("dialog");
  render(box, h("form", { method: "dialog" }, h("h2", { id: "dialog-title" }, title),
    h("ul", { class: "choices" }, options.map((one, index) => h("li", {}, h("button", { value: String(index), class: one.danger ? "danger" : null, disabled: Boolean(one.not) }, one.words),
      h("span", { class: "detail" }, one.not || one.does)))),
    h("div", { class: "actions" }, h("button", { type: "button", "data-do": "close" }, "Close"))));
  box.returnValue = "";
  box.showModal();
  return new Promise((resolve) => {
    box.addEventListener("close", () => resolve(options[box.returnValue] || null), { once: true });
  });
}

async function unlock() {
  if (may()) {
    token.set("");
    show();
    return false;
  }
  const value = await dialog("The token of the scheduler", h("label", { class: "block" }, h("span", {}, "It is kept by this tab until it is closed."), h("input", { type: "password", name: "token", required: true, autocomplete: "off" })), "Unlock");
  if (!value) return false;
  token.set(value);
  try {
    await ask("check", { method: "POST", headers: { "Content-Type": "application/json" }, body: "{}" });
  } catch (error) {
    token.set("");
    toast(error.status === 401 ? "That is not the token." : error.message, true);
  }
  refresh();
  return may();
}

async function act(path, body, question, done) {
  if (!may() && !(await unlock())) return;
  if (question && !(await dialog("Are you sure?", h("p", {}, question), "Yes", true))) return;
  try {
    const answer = await ask(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: body || "{}" });
    const count = answer.cancelled !== undefined ? ` ${model.grouped(answer.cancelled)} jobs.` : answer.done !== undefined ? ` ${model.grouped(answer.done)} jobs${answer.left ? `, ${model.grouped(answer.left)} could not be` : ""}.` : "";
    toast((done || "Done.") + count);
  } catch (error) {
    if (error.status === 401) token.set("");
    toast(error.status ? error.message : "The scheduler does not answer.", true);
  }
  refresh();
}

function go(changes) {
  const values = Object.fromEntries(app.at.query);
  location.hash = model.makeHash(app.at.view, app.at.id, { ...values, ...changes });
}

const DOES = {
  close: () => $("dialog").close("no"),
  token: () => unlock(),
  hold: () => act("hold", JSON.stringify({ on: !app.live.hold }), app.live.hold ? "Switch holding off, for all routes? Every job starts at once, paced; each cold prefix is then written many times." : "", app.live.hold ? "Holding is off." : "Holding is on."),
  act: (data) => act(data.path, data.body, data.ask, data.done),
  dead: (data) => {
    const ids = [...document.querySelectorAll('input[name="dead"]:checked')].map((box) => box.value);
    return ids.length ? act(data.path, JSON.stringify({ ids }), data.ask, data.done) : toast("Choose some first.", true);
  },
  choose: () => {
    const boxes = [...document.querySelectorAll('input[name="dead"]')], all = boxes.every((box) => box.checked);
    boxes.forEach((box) => { box.checked = !all; });
  },
  sort: (data) => go({ sort: data.sort, order: app.at.query.get("sort") === data.sort && app.at.query.get("order") !== "asc" ? "asc" : "", offset: "" }),
  page: (data) => go({ offset: data.offset }),
  more: async (data) => {
    const family = app.data && app.data.page && app.data.page.families.find((one) => one.id === data.id);
    const chosen = family && await choice(`${family.route} ${family.id.slice(0, 8)}`, familyActions(family));
    if (chosen) act(chosen.path, "{}", "", chosen.done); // the choice said what it does
  },
  help: () => dialog("Keys", h("dl", { class: "keys" }, [["1 – 7", "the views"], ["/", "find"], ["j  k", "next and previous row"], ["Enter", "open it"], ["a", "what can be done with it"], ["?", "this"]].map(([key, words]) => [h("dt", {}, key), h("dd", {}, words)]))),
};

document.addEventListener("click", (event) => {
  const node = event.target.closest("[data-do]");
  if (node && node.tagName === "BUTTON" && DOES[node.dataset.do]) DOES[node.dataset.do](node.dataset);
});

let typing = 0;
document.addEventListener("input", (event) => {
  const field = event.target;
  if (field.dataset.do !== "filter") return;
  clearTimeout(typing);
  typing = setTimeout(() => go({ [field.name]: field.value, offset: "" }), field.type === "search" ? 200 : 0);
});

document.addEventListener("submit", (event) => {
  if (event.target.method === "dialog") return;
  event.preventDefault();
  const id = event.target.querySelector('input[name="id"]');
  if (event.target.dataset.do === "find-job" && id && id.value.trim()) location.hash = model.makeHash("job", id.value.trim());
});

function moveRow(step) {
  const rows = [...document.querySelectorAll("tr[data-row] a[href]")].filter((link, index, all) => index === 0 || link.closest("tr") !== all[index - 1].closest("tr"));
  const here = rows.findIndex((link) => link.closest("tr") === (document.activeElement && document.activeElement.closest("tr")));
  const next = rows[Math.max(0, Math.min(rows.length - 1, here < 0 ? 0 : here + step))];
  if (next) next.focus();
}

function actOnRow() {
  const row = document.activeElement && document.activeElement.closest("tr"), more = row && row.querySelector('[data-do="more"]');
  if (more) more.click();
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || $("dialog").open || /INPUT|SELECT|TEXTAREA/.test(event.target.tagName)) return;
  const number = Number(event.key);
  if (number >= 1 && number <= MENU.length) location.hash = `#/${MENU[number - 1]}`;
  else if (event.key === "/") {
    const field = document.querySelector('input[type="search"]');
    if (field) field.focus();
  } else if (event.key === "j") moveRow(1);
  else if (event.key === "k") moveRow(-1);
  else if (event.key === "a") actOnRow();
  else if (event.key === "?") DOES.help();
  else return;
  event.preventDefault();
});

// ---- start ---------------------------------------------------------------------------

function onHash() {
  const before = app.at;
  app.at = model.parseHash(location.hash);
  if (!before || before.view !== app.at.view || before.id !== app.at.id) {
    app.data = null;
    app.error = "";
    scrollTo(0, 0);
    if (before) $("main").focus({ preventScroll: true });
  }
  refresh();
}

// The page was served with the figures of that moment.
function readFirst() {
  const first = $("first");
  if (!first) return;
  app.live = JSON.parse(first.textContent);
  app.heardMs = Date.now();
  first.remove();
}

async function begin() {
  readFirst();
  onHash(); // its figures first: they are waited for
  listen();
  setInterval(() => (isLate() === Boolean(app.late) ? showState() : show()), 2000);
  app.session = await ask("session").catch(() => null);
  show();
}

addEventListener("hashchange", onHash);
document.addEventListener("visibilitychange", onVisibility);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", show);
begin();
