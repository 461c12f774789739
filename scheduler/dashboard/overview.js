// overview.js - the first view: what waits and why, what it costs, what has changed.
import { h } from "./dom.js";
import * as model from "./model.js";
import { CHARTS } from "./charts.js";
import { aheadFacts, avoidableList, burstTable, causeTable, jumpBox, ledgerNotes, lifetimeTable, moneyTiles, savedWords, spendTable } from "./money.js";
import { budgetTable } from "./places.js";
import { badge, familyLink, heading, param, routeLink, section, tile } from "./tables.js";

const NOT_WAITING = new Set(["nothing", "no work", "slots"]); // jobs of these start as others end

function heldSum(overview) {
  const sum = { families: 0, waiting: 0, oldest_ms: 0 };
  for (const [kind, one] of Object.entries(overview.blocked)) {
    if (NOT_WAITING.has(kind)) continue;
    sum.families += one.families;
    sum.waiting += one.waiting;
    if (one.oldest_ms && (!sum.oldest_ms || one.oldest_ms < sum.oldest_ms)) sum.oldest_ms = one.oldest_ms;
  }
  return sum;
}

const REASONS = {
  "being written": "One request writes the prefix, the others wait to read it.",
  checking: "The prefix was written; one job shows that it can be read.",
  elected: "One job may write and waits for a slot.",
  "drain order": "The slots work on other prefixes first.",
  slots: "It is being drained, as fast as there are slots.",
  pace: "The account is approached step by step.",
  window: "As many requests run as the account may have at once.",
  budget: "A limit of the account is used up for this minute.",
  parked: "The provider told us to wait.",
  paused: "Somebody paused it.",
  "no worker": "No live worker serves the pool, or knows the upstream.",
  nothing: "Jobs start as slots become free.",
};

const REASON_ORDER = ["no worker", "parked", "budget", "paused", "being written", "checking", "elected", "pace", "window", "drain order", "slots", "nothing"];

// What binds the family with most of these jobs: the number, until when, and what to do.
function bindingWords(one, families, now) {
  const detail = [model.blockedDetail(one), model.until(one, now)].filter(Boolean).join(" · ");
  return [h("span", { class: "who" }, families === 1 ? one.route : `mostly ${one.route}`), h("span", {}, `${model.groupedIn(one.why)} `), detail ? h("span", { class: "detail" }, detail) : null, one.advice ? h("span", { class: "advice" }, ` Advice: ${one.advice}.`) : null];
}

function reasonRows(overview) {
  const largest = Math.max(1, ...Object.values(overview.blocked).map((one) => one.waiting));
  const rows = REASON_ORDER.filter((kind) => overview.blocked[kind] && overview.blocked[kind].waiting > 0);
  if (rows.length === 0) return h("p", { class: "empty" }, "No job waits.");
  return h("ul", { class: "reasons" }, rows.map((kind) => {
    const one = overview.blocked[kind], most = one.most && one.most.blocked_kind === kind ? one.most : null;
    return h("li", { "data-key": kind }, h("a", { href: model.makeHash("families", "", { blocked: kind, show: "all" }) },
      badge(model.blockedTone(kind), kind === "nothing" ? "may start" : most ? model.blockedShort(most) : model.blockedWord(kind)),
      h("span", { class: "sentence" }, most ? bindingWords(most, one.families, overview.now_ms) : REASONS[kind]),
      h("svg", { class: `meter ${model.blockedTone(kind)}`, viewBox: "0 0 100 6", preserveAspectRatio: "none", "aria-hidden": "true" },
        h("rect", { x: 0, y: 0, width: 100, height: 6, class: "track" }),
        h("rect", { x: 0, y: 0, width: Math.max(1, one.waiting * 100 / largest).toFixed(1), height: 6, class: "fill" })),
      h("span", { class: "count" }, h("b", {}, model.grouped(one.waiting)), ` ${one.waiting === 1 ? "job" : "jobs"} · ${model.grouped(one.families)} ${one.families === 1 ? "family" : "families"}`),
      h("span", { class: "oldest" }, one.oldest_ms ? `longest ${model.age(one.oldest_ms, overview.now_ms)}` : "")));
  }));
}

function noteList(notes, now) {
  if (!notes.length) return h("p", { class: "empty" }, "Nothing has happened yet.");
  return h("ol", { class: "notes" }, model.folded(notes).slice(0, 10).map((note) => h("li", { class: note.level },
    h("time", { datetime: new Date(note.at_ms).toISOString(), title: model.day(note.at_ms) }, model.moment(note.at_ms, now)),
    h("span", {}, note.route ? [routeLink(note.route), " "] : null, note.budget ? [h("code", {}, note.budget), " "] : null,
      note.text, model.timesWords(note), note.family ? [" (", familyLink(note.family), ")"] : null))));
}

function tokensTile(history) {
  const sums = ["read", "written", "uncached"].map((name) => model.lastMinute(history.at_ms, history[name]));
  const known = sums.every((one) => one !== null);
  const all = known ? sums[0] + sums[1] + sums[2] : 0;
  return tile("Input tokens a minute", known ? model.compact(all) : "–",
    known && all > 0 ? `${model.percent(sums[0] / all)} read, ${model.percent(sums[1] / all)} written` : "of jobs that are done");
}

// What happened, for the line above the charts and the list below: new prefixes and spikes
// from the ledger, the rest from the notes.
function changesOf(ledger) {
  const versions = ledger.changes.map((one) => ({ at_ms: one.at_ms, kind: one.twin ? "placed" : "version", route: one.route, family: one.family,
    words: one.twin ? `came to ${one.place} too` : `has a new prefix, v${one.number}${one.change ? `: ${model.changeWords(one.change)}` : ""}` }));
  const spikes = ledger.bursts.filter((one) => one.spike).map((one) => ({ at_ms: one.start_ms, kind: "spike", route: one.route, family: one.family,
    words: `wrote its prefix ${model.grouped(one.extra_writes)} times too often in a burst` }));
  const notes = ledger.notes.map((one) => ({ at_ms: one.at_ms, kind: /^the configuration /.test(one.text) ? "config" : one.level === "info" ? "info" : "notice", route: one.route, budget: one.budget, family: one.family, words: one.text }));
  return [...versions, ...spikes, ...notes].sort((a, b) => b.at_ms - a.at_ms);
}

export function eventsOf(ledger) {
  return changesOf(ledger).map((one) => ({ at_ms: one.at_ms, kind: one.kind, words: [one.route || one.budget, one.words].filter(Boolean).join(" "),
    href: one.family ? model.makeHash("family", one.family) : one.route ? model.makeHash("route", one.route) : "#/overview" }));
}

const MARKS = [["version", "new version"], ["spike", "creation spike"], ["notice", "parked, paused, switched"], ["placed", "one more place"], ["config", "another configuration"], ["info", "the scheduler"]];

function changeList(changes) {
  if (changes.length === 0) return h("p", { class: "empty" }, "No new prefix, no restart, no account parked, no switch.");
  return h("ol", { class: "changes" }, model.folded(changes).slice(0, 10).map((one) => h("li", {}, h("span", { class: `mark ${one.kind}`, "aria-hidden": "true" }), h("time", { datetime: new Date(one.at_ms).toISOString() }, model.day(one.at_ms)),
    h("span", {}, one.route ? [routeLink(one.route), " "] : null, one.budget ? [h("code", {}, one.budget), " "] : null, one.words, model.timesWords(one), one.family ? [" (", familyLink(one.family), ")"] : null))));
}

function rangeLinks(range) {
  return h("div", { class: "ranges", role: "group", "aria-label": "Range of the charts" }, [["hour", "Last hour"], ["week", "This week"]].map(([name, words]) =>
    h("a", { href: model.makeHash("overview", "", { range: name === "hour" ? "" : name }), "aria-current": name === range ? "true" : null }, words)));
}

// Two charts under one line of events.
function pastSection(range) {
  return h("section", {}, h("div", { class: "sectionhead" }, h("h2", {}, "Reads against writes, and what happened"),
    h("ul", { class: "marks" }, MARKS.map(([kind, words]) => h("li", {}, h("span", { class: `mark ${kind}`, "aria-hidden": "true" }), words))), rangeLinks(range)),
    h("div", { class: "pair" }, Object.entries(CHARTS[range]).map(([kind, { title }]) => h("div", { "data-key": `${range}-${kind}` }, h("h3", {}, title),
      h("div", { class: "chart", "data-keep": `chart-${range}-${kind}` }, h("p", { class: "empty" }, "A line needs ten seconds."))))));
}

// What puts the first job in: with an upstream of the configuration, if it has one.
function firstJob(session) {
  const name = session && session.upstreams.length ? session.upstreams[0] : "NAME";
  return `XADD ${session ? session.namespace : "warmq"}:jobs * upstream ${name} route ROUTE body '{…}'`;
}

export const rangeOf = (at) => (param(at, "range") === "week" ? "week" : "hour");

export const overview = {
  title: "Overview",
  read: () => ({ history: "history", ledger: ["ledger", 5000] }),
  show: (at, data, live, may, session) => {
    const now = live.now_ms, held = heldSum(live), history = data.history;
    const [done, came] = ["done", "admitted"].map((name) => model.lastMinute(history.at_ms, history[name]));
    return [
      heading("Overview"),
      live.counts.admitted === 0 && live.all.families === 0 ? h("div", { class: "why later" }, h("strong", {}, "No job has come yet"),
        h("p", {}, "Put one in from any language: ", h("code", {}, firstJob(session)), ". ", live.pools.some((pool) => pool.slots > 0) ? "A worker is there." : ["No worker is there yet: start one with ", h("code", {}, "warmq-worker"), "."])) : null,
      live.hold ? null : h("div", { class: "why stuck" }, h("strong", {}, "Holding is off"), h("p", {}, "Every job starts at once, paced; prefixes are written more than once.")),
      live.hold && live.unheld.length ? h("div", { class: "why held" }, h("strong", {}, `Holding is off for ${live.unheld.length === 1 ? "one route" : `${live.unheld.length} routes`}`), h("p", {}, live.unheld.map((name, index) => [index ? ", " : "", routeLink(name)]), ": their jobs start at once, paced.")) : null,
      live.admits ? null : h("div", { class: "why stuck" }, h("strong", {}, "Nothing is admitted"), h("p", {}, "The cursor of the inbox is missing: warmq doctor --repair.")),
      live.pressure ? h("div", { class: "why budget" }, h("strong", {}, "Redis is nearly full"), h("p", {}, "It uses more than 90 % of its maxmemory; producers wait.")) : null,
      live.evicts ? h("div", { class: "why stuck" }, h("strong", {}, "Redis may throw jobs away"), h("p", {}, "Its maxmemory-policy was changed: when it is full, it drops keys. Set it back: ", h("code", {}, "CONFIG SET maxmemory-policy noeviction"), ".")) : null,
      live.budgets.filter(model.isForeign).map((one) => h("div", { class: "why held" }, h("strong", {}, "Somebody else uses an account"),
        h("p", {}, h("code", {}, one.name), `: at least ${model.grouped(one.requests_foreign)} requests of the last 15 minutes did not come through WarmQ, beside ${model.grouped(one.requests_own)} that did. They take from its limits and may push prefixes out of its cache.`))),
      model.jumps(data.ledger).slice(0, 3).map(jumpBox),
      h("div", { class: "tiles" },
        tile("Waiting", model.grouped(live.all.waiting), live.all.oldest_ms ? `longest ${model.age(live.all.oldest_ms, now)}` : "nobody waits", "", "#/families?sort=waiting"),
        tile("Held back", model.grouped(held.waiting), held.waiting ? `in ${model.grouped(held.families)} ${held.families === 1 ? "family" : "families"}` : "all may start", held.waiting ? "amber" : "", "#/families?show=held"),
        tile("In flight", model.grouped(live.all.running), `${model.grouped(live.pools.reduce((sum, pool) => sum + pool.slots, 0))} slots`, "", "#/workers"),
        tile("Warm prefixes", model.grouped(live.all.warm), `of ${model.grouped(live.all.families - live.singles.families)} that jobs share`, "", "#/families?sort=state"),
        tile("Done a minute", done === null ? "–" : model.compact(done), came === null ? "" : `${model.compact(came)} came in`),
        tile("Dead letters", model.grouped(live.counts.dead_letters), model.failureWords(live.counts), live.counts.dead_letters ? "red" : "", "#/dead"),
        tokensTile(history),
        moneyTiles(data.ledger)),
      data.ledger.week.cost > 0 ? h("div", { class: "pair" },
        section("Dollars an hour: now, at this hour yesterday, on average this week", spendTable(data.ledger)),
        section("What could be avoided, what was saved", avoidableList(data.ledger), savedWords(data.ledger))) : null,
      section("Why jobs wait", reasonRows(live)),
      pastSection(rangeOf(at)),
      section("What changed", changeList(changesOf(data.ledger))),
      section("What was written, and why", causeTable(data.ledger), ledgerNotes(data.ledger)),
      section("Bursts", burstTable(data.ledger, true)),
      section("How long entries really live", lifetimeTable(data.ledger)),
      section("Warm-ups, and what they saved", aheadFacts(data.ledger)),
      section("Accounts", budgetTable(live, may)),
      section("What happened", noteList(live.notes, now)),
    ];
  },
};
