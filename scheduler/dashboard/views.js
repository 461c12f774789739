// views.js - each view: what it reads, and what it shows.  `read` answers the paths to
// fetch under api/v1; `show` makes the page of what they said.
import { h } from "./dom.js";
import * as model from "./model.js";
import { CHARTS } from "./charts.js";
import { badge, button, facts, familyLink, pager, routeLink, section, shortId, spark, stateBadge, table, tile, whyBox } from "./tables.js";

const query = (values) => {
  const text = new URLSearchParams(Object.entries(values).filter(([, value]) => value !== "" && value !== null && value !== undefined)).toString();
  return text ? `?${text}` : "";
};
const param = (at, name, fallback) => at.query.get(name) || fallback;
const heading = (title, ...more) => h("div", { class: "heading" }, h("h1", {}, title), more);

// ---- overview ------------------------------------------------------------------------

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
  budget: "A limit of the account is used up for this minute.",
  parked: "The provider told us to wait.",
  paused: "Somebody paused it.",
  "no worker": "No live worker serves the pool.",
  nothing: "Jobs start as slots become free.",
};
const REASON_ORDER = ["no worker", "parked", "budget", "paused", "being written", "checking", "elected", "pace", "drain order", "slots", "nothing"];

// What binds the family with most of these jobs: the number, until when, and what to do.
function bindingWords(one, now) {
  const detail = [model.blockedDetail(one), model.until(one, now)].filter(Boolean).join(" · ");
  return [h("span", {}, `${one.why} `), detail ? h("span", { class: "detail" }, detail) : null, one.advice ? h("span", { class: "advice" }, ` Advice: ${one.advice}.`) : null];
}

function reasonRows(overview) {
  const largest = Math.max(1, ...Object.values(overview.blocked).map((one) => one.waiting));
  const rows = REASON_ORDER.filter((kind) => overview.blocked[kind] && overview.blocked[kind].waiting > 0);
  if (rows.length === 0) return h("p", { class: "empty" }, "No job waits.");
  return h("ul", { class: "reasons" }, rows.map((kind) => {
    const one = overview.blocked[kind], most = one.most && one.most.blocked_kind === kind ? one.most : null;
    return h("li", { "data-key": kind }, h("a", { href: model.makeHash("families", "", { blocked: kind, show: "all" }) },
      badge(model.blockedTone(kind), kind === "nothing" ? "may start" : model.blockedWord(kind)),
      h("span", { class: "sentence" }, most ? bindingWords(most, overview.now_ms) : REASONS[kind]),
      h("svg", { class: `meter ${model.blockedTone(kind)}`, viewBox: "0 0 100 6", preserveAspectRatio: "none", "aria-hidden": "true" },
        h("rect", { x: 0, y: 0, width: 100, height: 6, class: "track" }),
        h("rect", { x: 0, y: 0, width: Math.max(1, one.waiting * 100 / largest).toFixed(1), height: 6, class: "fill" })),
      h("span", { class: "count" }, h("b", {}, model.grouped(one.waiting)), ` ${one.waiting === 1 ? "job" : "jobs"} · ${model.grouped(one.families)} ${one.families === 1 ? "family" : "families"}`),
      h("span", { class: "oldest" }, one.oldest_ms ? `longest ${model.age(one.oldest_ms, overview.now_ms)}` : "")));
  }));
}

function limitWords(limits) {
  const parts = limits ? [["requests", "requests"], ["input", "input tokens"], ["output", "output tokens"]]
    .filter(([name]) => limits[name] > 0).map(([name, words]) => `${model.compact(limits[name])} ${words}`) : [];
  return parts.length ? `${parts.join(", ")} a minute` : "none known";
}

function budgetState(budget, now) {
  if (budget.parked_until_ms > now) return badge("stuck", `parked until ${model.clock(budget.parked_until_ms)}`);
  return budget.rising ? badge("later", "rising") : badge("go", "open");
}

export function budgetTable(overview, may) {
  return table("Accounts", [
    { label: "Account and class", cell: (one) => h("code", {}, one.name) },
    { label: "State", cell: (one) => budgetState(one, overview.now_ms) },
    { label: "Pace", number: true, cell: (one) => [model.grouped(one.pace), h("span", { class: "detail" }, " at once")] },
    { label: "Waiting or running", number: true, cell: (one) => model.grouped(one.pending) },
    { label: "Limits", cell: (one) => limitWords(one.limits) },
    { label: "Not through WarmQ", number: true, cell: (one) => one.requests_foreign ? h("span", { class: model.isForeign(one) ? "amber" : "" }, `${model.grouped(one.requests_foreign)} or more of ${model.grouped(one.requests_own + one.requests_foreign)}`) : h("span", { class: "quiet" }, "none seen") },
    { label: "Prefix hits", number: true, cell: (one) => model.percent(one.prefix_hit_ratio) },
    { label: "Tokens read", number: true, cell: (one) => model.percent(one.token_read_ratio) },
    may && overview.budgets.some((one) => one.parked_until_ms > overview.now_ms) ? { label: "", class: "act", cell: (one) => one.parked_until_ms > overview.now_ms
      ? button("Unpark", "act", { path: "unpark", body: JSON.stringify({ budget: one.name }), ask: `Start the jobs of ${one.name} again? If its provider still refuses them, it parks again.`, done: "Unparked." }, { "aria-label": `Unpark ${one.name}` }) : null } : null,
  ].filter(Boolean), overview.budgets, { empty: "No account has been used yet.", id: "name" });
}

export function noteList(notes, now) {
  if (!notes.length) return h("p", { class: "empty" }, "Nothing has happened yet.");
  return h("ol", { class: "notes" }, notes.map((note) => h("li", { class: note.level },
    h("time", { datetime: new Date(note.at_ms).toISOString(), title: model.day(note.at_ms) }, model.clock(note.at_ms)),
    h("span", {}, note.route ? [routeLink(note.route), " "] : null, note.budget ? [h("code", {}, note.budget), " "] : null,
      note.text, note.family ? [" ", familyLink(note.family)] : null))));
}

function tokensTile(history) {
  const sums = ["read", "written", "uncached"].map((name) => model.lastMinute(history.at_ms, history[name]));
  const known = sums.every((one) => one !== null);
  const all = known ? sums[0] + sums[1] + sums[2] : 0;
  return tile("Input tokens a minute", known ? model.compact(all) : "–",
    known && all > 0 ? `${model.percent(sums[0] / all)} read, ${model.percent(sums[1] / all)} written` : "of jobs that are done");
}

// ---- money ---------------------------------------------------------------------------

function moneyTiles(ledger) {
  if (!ledger.week.cost) return [];
  const top = model.avoidable(ledger)[0];
  return [
    tile("Dollars an hour", model.money(model.hourly(ledger, (sums) => sums.cost)), `last hour ${model.moneyOf(ledger.last_hour.cost, ledger.since_ms, ledger.now_ms, 1)}, this hour yesterday ${model.moneyOf(ledger.yesterday.cost, ledger.since_ms, ledger.now_ms, 24)}`, "", "#/routes"),
    tile("Avoidable an hour", model.money(model.hourly(ledger, (sums) => sums.avoidable)), top ? `mostly ${model.causeWord(top.cause)}` : "nothing to blame", top ? "amber" : ""),
  ];
}

// What each route costs, dearest change first.
function spendTable(ledger) {
  const rows = model.spend(ledger).slice(0, 8);
  return table("Dollars an hour, by route", [
    { label: "Route", class: "name", cell: (one) => routeLink(one.route) },
    { label: "Now", number: true, cell: (one) => h("b", {}, model.money(one.now)) },
    { label: "Yesterday", number: true, cell: (one) => model.moneyOf(one.yesterday, one.first_ms, ledger.now_ms, 24) },
    { label: "Week", number: true, cell: (one) => model.money(one.average) },
    { label: "Dearer", cell: (one) => one.jump ? [badge("held", `since ${model.weekday(one.jump.at_ms, true)}`), h("span", { class: "detail" }, `from ${model.money(one.jump.from)}`)] : h("span", { class: "quiet" }, "no") },
  ], rows, { id: "route", empty: "Nothing was paid yet." });
}

function avoidableList(ledger) {
  const rows = model.avoidable(ledger).slice(0, 3);
  if (rows.length === 0) return h("p", { class: "empty" }, "Nothing that a better set-up avoids was paid in the last hour.");
  return h("ol", { class: "causes" }, rows.map((one) => h("li", { "data-key": one.cause }, h("b", {}, `${model.money(one.now)} an hour`), " ", badge("held", model.causeWord(one.cause)),
    h("span", { class: "detail" }, ` ${one.meaning} ${model.remedy(one.cause)}`))));
}

function savedWords(ledger) {
  return h("p", { class: "saved" }, h("b", {}, model.money(ledger.week.saved)), " saved by holding this week ",
    h("span", { class: "detail" }, "What bursts have cost, against the same arrivals all started at once (simulated)."));
}

// What a route's step in price was: how much, since when, what came with it.
function jumpBox(one) {
  const version = one.version, change = version && version.change;
  return h("div", { class: "why held", "data-key": `jump-${one.route}-${one.at_ms}` },
    h("strong", {}, `${model.weekday(one.at_ms, true)}: ${one.route} became dearer`),
    h("p", {}, routeLink(one.route), " went from ", h("b", {}, model.money(one.from)), " to ", h("b", {}, model.money(one.to)), " an hour",
      one.until_ms ? ` until ${model.weekday(one.until_ms, true)}` : "", ": ", h("b", {}, model.money(one.extra)), " more than before."),
    version ? h("p", {}, `Its version v${version.number} `, familyLink(version.family), ` came ${model.weekday(version.first_ms, true)}`,
      change ? [": ", h("b", {}, model.changeWords(change)), `. ${["text", "length"].includes(change.kind) ? "" : change.fix}`] : ".") : h("p", { class: "quiet" }, "No new version came then: look at its causes and at its load."));
}

// What happened, for the line above the charts and the list below: new prefixes and spikes
// from the ledger, the rest from the notes.
export function changesOf(ledger) {
  const versions = ledger.changes.map((one) => ({ at_ms: one.at_ms, kind: one.twin ? "placed" : "version", route: one.route, family: one.family,
    words: one.twin ? `came to ${one.place} too` : `has a new prefix, v${one.number}${one.change ? `: ${model.changeWords(one.change)}` : ""}` }));
  const spikes = ledger.bursts.filter((one) => one.spike).map((one) => ({ at_ms: one.start_ms, kind: "spike", route: one.route, family: one.family,
    words: `wrote its prefix ${model.grouped(one.extra_writes)} times too often in a burst` }));
  const notes = ledger.notes.map((one) => ({ at_ms: one.at_ms, kind: one.level === "info" ? "info" : "notice", route: one.route, budget: one.budget, family: one.family, words: one.text }));
  return [...versions, ...spikes, ...notes].sort((a, b) => b.at_ms - a.at_ms);
}

export function eventsOf(ledger) {
  return changesOf(ledger).map((one) => ({ at_ms: one.at_ms, kind: one.kind, words: [one.route || one.budget, one.words].filter(Boolean).join(" "),
    href: one.family ? model.makeHash("family", one.family) : one.route ? model.makeHash("route", one.route) : "#/overview" }));
}

const MARKS = [["version", "new version"], ["spike", "creation spike"], ["notice", "parked, paused, switched"], ["placed", "one more place"], ["info", "the scheduler"]];

function changeList(changes) {
  if (changes.length === 0) return h("p", { class: "empty" }, "No new prefix, no restart, no account parked, no switch.");
  return h("ol", { class: "changes" }, changes.slice(0, 10).map((one) => h("li", {}, h("span", { class: `mark ${one.kind}`, "aria-hidden": "true" }), h("time", { datetime: new Date(one.at_ms).toISOString() }, model.day(one.at_ms)),
    h("span", {}, one.route ? [routeLink(one.route), " "] : null, one.budget ? [h("code", {}, one.budget), " "] : null, one.words, one.family ? [" ", familyLink(one.family)] : null))));
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

// How long entries really live, what was sent ahead, what went past WarmQ.
function lifetimeTable(ledger) {
  const rows = ledger.places.flatMap((place) => place.rests.map((rest) => ({ ...rest, place, id: `${place.place} ${rest.from_ms}` })));
  return table("How long entries live", [
    { label: "Place", cell: (one) => h("b", {}, one.place.place) },
    { label: "After a rest of", cell: (one) => `${model.duration(one.from_ms)} ${one.to_ms ? `to ${model.duration(one.to_ms)}` : "or more"}` },
    { label: "Asked for", number: true, cell: (one) => one.place.ttl_ms ? model.duration(one.place.ttl_ms) : "–" },
    { label: "Was still there", number: true, cell: (one) => h("span", { class: one.gone > 0 && one.to_ms && one.to_ms <= one.place.ttl_ms ? "amber" : "" }, model.percent(one.kept / (one.kept + one.gone))) },
    { label: "Found", number: true, cell: (one) => model.grouped(one.kept) },
    { label: "Gone", number: true, cell: (one) => model.grouped(one.gone) },
  ], rows, { id: "id", empty: "No prefix has rested for five seconds and was needed again yet." });
}

function aheadFacts(ledger) {
  const ahead = ledger.ahead, wasted = ledger.week.causes.find((one) => one.cause === "prewarm_wasted"), late = ledger.week.causes.find((one) => one.cause === "keepwarm");
  return facts([
    ["Warm-ups ahead of jobs", model.grouped(ahead.calls), `${model.money(ahead.cost)} since the ledger began`],
    ["Read by a job", model.grouped(ahead.used), ahead.calls ? "what they wrote, a job would have written" : ""],
    ["For nobody", model.grouped(ahead.wasted), wasted ? `${model.money(wasted.extra)} this week` : ""],
    ["Keep-warm pings that wrote", late ? model.grouped(late.calls) : "0", late ? `${model.money(late.extra)} this week` : "this version sends none"],
  ]);
}

export function causeTable(ledger) {
  const priced = ledger.week.cost > 0;
  return table("Written tokens and their causes", [
    { label: "Cause", cell: (one) => [badge(one.avoidable ? "held" : "rest", model.causeWord(one.cause)), h("span", { class: "detail" }, one.meaning)] },
    { label: "Written this hour", number: true, cell: (one) => model.grouped(one.now.written) },
    { label: "Written this week", number: true, cell: (one) => model.grouped(one.written) },
    { label: "Paid in full", number: true, cell: (one) => model.grouped(one.full) },
    priced ? { label: "Price", number: true, cell: (one) => model.money(one.cost) } : null,
    priced ? { label: "More than reading", number: true, cell: (one) => one.avoidable && one.extra > 0 ? h("span", { class: "amber" }, model.money(one.extra)) : model.money(one.extra) } : null,
  ].filter(Boolean), model.causes(ledger.this_hour, ledger.week), { id: "cause", empty: "Nothing was written yet." });
}

function ledgerNotes(ledger, withSaved) {
  return [
    ledger.week.cost > 0 || ledger.week.calls === 0 ? null : h("p", { class: "quiet" }, "No dollars are shown: no price is known of these models (models[].price_input in the configuration)."),
    ledger.week.unpriced > 0 && ledger.week.cost > 0 ? h("p", { class: "quiet" }, `${model.grouped(ledger.week.unpriced)} calls were of models without a price; they are in no dollar figure.`) : null,
    ledger.week.unreported > 0 ? h("p", { class: "quiet" }, `${model.grouped(ledger.week.unreported)} calls said nothing of their usage; they are in no figure here.`) : null,
    ledger.sums_up ? null : h("p", { class: "amber" }, "Parts of the record were lost: these sums are too small."),
    withSaved && ledger.week.saved > 0 ? savedWords(ledger) : null,
  ];
}

export function burstTable(ledger, withRoute) {
  const priced = ledger.bursts.some((one) => one.cost > 0);
  return table("Bursts", [
    { label: "Began", cell: (one) => [model.clock(one.start_ms), one.spike ? [" ", badge("held", "spike")] : null, one.open ? [" ", badge("later", "open")] : null] },
    withRoute ? { label: "Route", cell: (one) => routeLink(one.route) } : null,
    { label: "Starts", number: true, cell: (one) => model.grouped(one.starts) },
    { label: "Writes", number: true, cell: (one) => [model.grouped(one.writes), one.extra_writes ? h("span", { class: "detail amber" }, ` ${model.grouped(one.extra_writes)} too many`) : null] },
    { label: "Read the prefix", number: true, cell: (one) => model.grouped(one.hits) },
    { label: "Readable after", number: true, cell: (one) => model.duration(one.readable_ms) },
    { label: "Held, job by job", number: true, cell: (one) => model.duration(one.held_ms) },
    { label: "429 and 529", number: true, cell: (one) => model.grouped(one.refusals) },
    priced ? { label: "Price / all at once", number: true, cell: (one) => `${model.money(one.cost)} / ${model.money(one.naive_cost)}` } : null,
    { label: "Family", cell: (one) => familyLink(one.family) },
  ].filter(Boolean), ledger.bursts.slice(0, 12), { empty: "No burst yet: ten starts of one prefix within ten seconds, after a minute of rest." });
}

export const rangeOf = (at) => (param(at, "range") === "week" ? "week" : "hour");

// ---- the first view ------------------------------------------------------------------

export const overview = {
  title: "Overview",
  read: () => ({ history: "history", ledger: ["ledger", 5000] }),
  show: (at, data, live, may) => {
    const now = live.now_ms, held = heldSum(live), history = data.history;
    const done = model.lastMinute(history.at_ms, history.done), came = model.lastMinute(history.at_ms, history.admitted);
    return [
      heading("Overview"),
      live.hold ? null : h("div", { class: "why stuck" }, h("strong", {}, "Holding is off"), h("p", {}, "Every job starts at once, paced; prefixes are written more than once.")),
      live.hold && live.unheld.length ? h("div", { class: "why held" }, h("strong", {}, `Holding is off for ${live.unheld.length === 1 ? "one route" : `${live.unheld.length} routes`}`), h("p", {}, live.unheld.map((name, index) => [index ? ", " : "", routeLink(name)]), ": their jobs start at once, paced.")) : null,
      live.admits ? null : h("div", { class: "why stuck" }, h("strong", {}, "Nothing is admitted"), h("p", {}, "The cursor of the inbox is missing: warmq doctor --repair.")),
      live.pressure ? h("div", { class: "why budget" }, h("strong", {}, "Redis is nearly full"), h("p", {}, "It uses more than 90 % of its maxmemory; producers wait.")) : null,
      live.budgets.filter(model.isForeign).map((one) => h("div", { class: "why held" }, h("strong", {}, "Somebody else uses an account"),
        h("p", {}, h("code", {}, one.name), `: at least ${model.grouped(one.requests_foreign)} requests of the last 15 minutes did not come through WarmQ, beside ${model.grouped(one.requests_own)} that did. They take from its limits and may push prefixes out of its cache.`))),
      model.jumps(data.ledger).slice(0, 3).map(jumpBox),
      h("div", { class: "tiles" },
        tile("Waiting", model.grouped(live.all.waiting), live.all.oldest_ms ? `longest ${model.age(live.all.oldest_ms, now)}` : "nobody waits", "", "#/families?sort=waiting"),
        tile("Held back", model.grouped(held.waiting), held.waiting ? `in ${model.grouped(held.families)} ${held.families === 1 ? "family" : "families"}` : "all may start", held.waiting ? "amber" : "", "#/families?show=held"),
        tile("In flight", model.grouped(live.all.running), `${model.grouped(live.pools.reduce((sum, pool) => sum + pool.slots, 0))} slots`, "", "#/workers"),
        tile("Done a minute", done === null ? "–" : model.compact(done), came === null ? "" : `${model.compact(came)} came in`),
        tile("Dead", model.grouped(live.counts.dead), "since the queue began", live.counts.dead ? "red" : "", "#/dead"),
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
      section("What happened", noteList(live.notes.slice(0, 10), now)),
    ];
  },
};

// ---- families ------------------------------------------------------------------------

const SHOWN = [["families", "all but single jobs"], ["busy", "with work"], ["held", "held back"], ["singles", "of one job"], ["all", "everything"]];

function select(name, label, options, chosen) {
  return h("label", {}, h("span", {}, label), h("select", { name, "data-do": "filter" },
    options.map(([value, words]) => h("option", { value, selected: value === chosen }, words))));
}

function familyColumns(now, may) {
  return [
    { label: "Family", sort: "route", class: "name", cell: (one) => [h("a", { href: model.makeHash("family", one.id), class: "strong" }, one.route), h("span", { class: "detail" }, h("code", {}, shortId(one.id)), ` ${one.budget}`)] },
    { label: "State", sort: "state", cell: (one) => stateBadge(one, now) },
    { label: "Blocked on", sort: "blocked", class: "blocked", cell: (one) => one.waiting > 0 || one.paused
      ? [badge(model.blockedTone(one.blocked_kind), model.blockedShort(one)), h("span", { class: "detail" }, model.until(one, now) || model.blockedDetail(one) || (one.blocked_kind === "drain order" && one.rank ? "" : ""))]
      : h("span", { class: "quiet" }, "–") },
    { label: "Waiting", sort: "waiting", number: true, class: "waiting", cell: (one) => [spark(one.backlog, "backlog of the last ten minutes"), h("b", {}, model.grouped(one.waiting || 0)), one.waiting > 0 ? h("span", { class: "detail under" }, `oldest ${model.age(one.oldest_ms, now)}`) : null] },
    { label: "In flight", sort: "running", number: true, cell: (one) => [model.grouped(one.running || 0), one.window ? h("span", { class: "detail" }, ` / ${model.grouped(one.window)}`) : null, one.drain_s === undefined ? null : h("span", { class: "detail under" }, `drained in ${model.estimate(one.drain_s)}`)] },
    { label: "Prefix hits", sort: "prefix_hit_ratio", number: true, cell: (one) => model.percent(one.prefix_hit_ratio) },
    { label: "Tokens read", sort: "token_read_ratio", number: true, cell: (one) => model.percent(one.token_read_ratio) },
    { label: "Read / written / uncached", sort: "tokens", number: true, class: "tokens", cell: (one) => `${model.compact(one.read)} / ${model.compact(one.written)} / ${model.compact(one.uncached)}` },
    may ? { label: "", class: "act", cell: (one) => one.paused
      ? button("Resume", "act", { path: `families/${one.id}/resume`, done: "Resumed." }, { "aria-label": `Resume ${one.route} ${shortId(one.id)}` })
      : button("Pause", "act", { path: `families/${one.id}/pause`, done: "Paused." }, { "aria-label": `Pause ${one.route} ${shortId(one.id)}` }) } : null,
  ].filter(Boolean);
}

export function familyTable(data, at, may, sortable) {
  return table("Families", familyColumns(data.now_ms, may), data.families, {
    sort: param(at, "sort", "work"), order: param(at, "order", "desc"), sortable, id: "id",
    empty: "No family matches. What was admitted long ago and has no work is forgotten." });
}

// Why there are so many of them, and what that has cost: drift, or really different texts.
function singlesCause(ledger) {
  const drift = ledger.week.causes.find((one) => one.cause === "drift");
  if (!drift) return "No two of them are nearly alike.";
  return [h("b", {}, "Cause: drift. "), `${model.grouped(drift.calls)} requests this week were nearly alike, and each paid for all of it: ${model.grouped(drift.written + drift.full)} tokens`,
    ledger.week.cost > 0 ? [", ", h("b", {}, model.money(drift.extra)), " more than reading"] : "", ". ", h("code", {}, "warmq explain a.json b.json"), " shows the first byte in which two differ."];
}

export const families = {
  title: "Families",
  read: (at) => ({ page: `families${query({ sort: param(at, "sort"), order: param(at, "order"), show: param(at, "show", "families"), blocked: param(at, "blocked"), q: param(at, "q"), offset: param(at, "offset") })}`, ledger: ["ledger", 5000] }),
  show: (at, { page, ledger }, live, may) => [
    heading("Families", h("span", { class: "quiet" }, `${model.grouped(page.total)} shown of ${model.grouped(page.all.families)}`)),
    h("form", { class: "filters", role: "search", "data-do": "search" },
      h("label", { class: "grow" }, h("span", {}, "Find"), h("input", { name: "q", type: "search", placeholder: "route, id, pool or account ( / )", value: param(at, "q", ""), "data-keep": "search", autocomplete: "off", "data-do": "filter" })),
      select("show", "Show", SHOWN, param(at, "show", "families")),
      select("blocked", "Blocked on", [["", "anything"], ...model.BLOCKED_KINDS.map((kind) => [kind, model.blockedWord(kind)])], param(at, "blocked", "")),
      select("sort", "Order", [["work", "most work"], ["waiting", "most waiting"], ["oldest", "longest wait"], ["running", "most in flight"], ["written", "most written"], ["route", "route"]], param(at, "sort", "work"))),
    page.singles.families > 0 && !["singles", "all"].includes(param(at, "show", "families"))
      ? h("p", { class: "folded" }, h("a", { href: "#/families?show=singles" }, `${model.grouped(page.singles.families)} families of one job each`),
        ` are one line here: ${model.grouped(page.singles.waiting)} wait, ${model.grouped(page.singles.running)} run. Nobody shares their prefix, so they are neither held nor marked`,
        page.singles.uncached ? ` and had ${model.compact(page.singles.uncached)} tokens in full` : "", ". ", singlesCause(ledger)) : null,
    familyTable(page, at, may, true),
    pager(page.total, page.offset, page.limit, page.families.length),
  ],
};

// ---- one family ----------------------------------------------------------------------

function laneTable(family, segments, now) {
  const rows = (family.lanes || []).map((lane, index) => ({ ...lane, index, segment: segments[index] }));
  return table("From the shared root to this prefix", [
    { label: "Part", cell: (one) => one.index === rows.length - 1 ? "this prefix" : `shared part ${one.index + 1}` },
    { label: "State", cell: (one) => [badge(model.stateTone({ open: "warm", writing: "being written", checking: "checking", closed: "cold" }[one.gate]), { open: "warm", writing: "being written", checking: "checking", closed: "cold", bypass: "not held", leaky: "not held" }[one.gate] || one.gate),
      h("span", { class: "detail" }, ["bypass", "leaky"].includes(one.gate) ? one.reason : one.gate === "open" && one.until_ms < 9e13 ? `until ${model.clock(one.until_ms)}` : "")] },
    { label: "Tokens", number: true, cell: (one) => [model.grouped(one.tokens), h("span", { class: "detail" }, one.measured ? " measured" : " estimated")] },
    { label: "Bytes of this part", number: true, cell: (one) => one.segment ? model.grouped(one.segment.bytes) : "–" },
    { label: "Marker", cell: (one) => one.marked ? "here" : "–" },
    { label: "Holds", cell: (one) => one.holds ? "yes" : "no" },
    { label: "Id", cell: (one) => h("code", {}, shortId(one.lane)) },
  ], rows, { empty: "The scheduler holds nothing of it in memory." });
}

function jobTable(page, caption, empty) {
  return table(caption, [
    { label: "Job", cell: (one) => h("a", { href: model.makeHash("job", one.id) }, h("code", {}, one.id)) },
    { label: "Enqueued", cell: (one) => model.clock(one.enqueued_ms) },
    { label: "Since", number: true, cell: (one) => model.age(one.enqueued_ms, page.now_ms) },
    page.state === "running" ? { label: "As", cell: (one) => one.role } : null,
    page.state === "running" ? { label: "Slot", cell: (one) => `${one.slot} of ${shortId(one.session)}` } : null,
    page.state === "running" ? { label: "Delivery", number: true, cell: (one) => one.delivery } : null,
  ].filter(Boolean), page.jobs, { empty, id: "id" });
}

function revealed(prefix) {
  if (!prefix.revealed) return null;
  return section("Its text", prefix.segments.map((one, index) => h("details", { open: index === prefix.segments.length - 1 },
    h("summary", {}, `Part ${index + 1}, ${model.grouped(one.bytes)} bytes`), h("pre", {}, one.text))));
}

// One bar a minute: what was read and what was written, of the largest of all minutes.
function hourBars(one, most) {
  const width = 4, high = 36, scale = (tokens) => Math.round(tokens * high / Math.max(most, 1));
  return h("svg", { class: "hour", viewBox: `0 0 ${60 * width} ${high}`, width: 60 * width, height: high, role: "img", "aria-label": "tokens read and written in each minute of the last hour" },
    one.read_a_minute.map((read, at) => {
      const below = scale(read), above = scale(one.written_a_minute[at]);
      return [below ? h("rect", { class: "read", x: at * width, y: high - below, width: width - 1, height: below }) : null,
        above ? h("rect", { class: "written", x: at * width, y: high - below - above, width: width - 1, height: above }) : null];
    }));
}

function placeTable(where) {
  const past = where.cells.filter((one) => one.read_a_minute);
  const most = Math.max(1, ...past.flatMap((one) => one.read_a_minute.map((read, at) => read + one.written_a_minute[at])));
  const recent = (one, name) => one[name] ? model.grouped(one[name].reduce((sum, value) => sum + value, 0)) : "–";
  return [where.everywhere ? h("p", { class: "amber" }, "It is kept at every place to which its route sends jobs: each has written it for itself.") : null,
    table("Its places", [
      { label: "Place", class: "name", cell: (one) => [h("b", {}, one.place), h("span", { class: "detail" }, h("code", {}, one.budget), " ", familyLink(one.family))] },
      { label: "Kept", cell: (one) => badge(model.placeTone(one), model.placeWord(one, where.now_ms)) },
      { label: "Last used", number: true, cell: (one) => one.used_ms ? `${model.age(one.used_ms, where.now_ms)} ago` : "–" },
      { label: "The last hour", cell: (one) => one.read_a_minute ? hourBars(one, most) : h("span", { class: "quiet" }, "nothing") },
      { label: "Requests", number: true, cell: (one) => recent(one, "requests_a_minute") },
      { label: "Hits", number: true, cell: (one) => recent(one, "hits_a_minute") },
      { label: "Read", number: true, cell: (one) => recent(one, "read_a_minute") },
      { label: "Written", number: true, cell: (one) => recent(one, "written_a_minute") },
      { label: "In flight", number: true, cell: (one) => model.grouped(one.running) },
      { label: "Drained in", number: true, cell: (one) => model.estimate(one.drain_s) },
    ], where.cells, { id: "family" })];
}

function writerTable({ writers }) {
  return table("Requests that wrote", [
    { label: "Reported", cell: (one) => model.clock(one.at_ms) },
    { label: "As", cell: (one) => one.role },
    { label: "To its first event", number: true, cell: (one) => one.first_ms && one.sent_ms ? model.duration(one.first_ms - one.sent_ms) : "–" },
    { label: "Read", number: true, cell: (one) => model.grouped(one.read) },
    { label: "Written", number: true, cell: (one) => model.grouped(one.written) },
    { label: "Uncached", number: true, cell: (one) => model.grouped(one.uncached) },
    { label: "Output", number: true, cell: (one) => model.grouped(one.output) },
  ], writers, { empty: "None of late." });
}

export const family = {
  title: "Family",
  parent: "families",
  read: (at) => ({ family: `families/${at.id}`, prefix: `families/${at.id}/prefix`, running: `jobs?state=running&limit=10&family=${at.id}`, waiting: `jobs?state=waiting&limit=10&family=${at.id}`, writers: `families/${at.id}/writers`, places: [`families/${at.id}/places`, 0, "maybe"], ledger: ["ledger", 5000] }),
  show: (at, { family: one, prefix, running, waiting, writers, places: where, ledger }, live, may) => {
    const now = live.now_ms;
    return [
      heading([h("span", {}, one.route), " ", h("code", {}, shortId(one.id))], may ? h("div", { class: "actions" },
        one.paused ? button("Resume", "act", { path: `families/${one.id}/resume`, done: "Resumed." }) : button("Pause", "act", { path: `families/${one.id}/pause`, done: "Paused." }),
        model.mayWarm(one) ? button("Warm", "act", { path: `families/${one.id}/warm`, ask: "Write its prefix now, ahead of its jobs? That costs one write, in vain if no job comes while the provider keeps it.", done: "One request writes it now." }) : null,
        button("Cancel what waits", "act", { path: `families/${one.id}/cancel`, ask: `End all ${model.grouped(one.waiting || 0)} waiting jobs of this family? Those that run go on.`, done: "Cancelled." }, { class: "danger" })) : null),
      whyBox(one, now),
      facts([
        ["State", stateBadge(one, now)],
        ["Waiting", model.grouped(one.waiting || 0), one.waiting > 0 ? `oldest ${model.age(one.oldest_ms, now)}` : ""],
        ["In flight", model.grouped(one.running || 0), one.window ? `of ${model.grouped(one.window)} that the account may run` : ""],
        ["Drained in", model.estimate(one.drain_s), "at the pace of the last minute"],
        ["Prefix", one.tokens ? `${model.grouped(one.tokens)} tokens` : "–"],
        ["Prefix hits", model.percent(one.prefix_hit_ratio), "jobs that read it, of those whose usage is known"],
        ["Tokens read", model.percent(one.token_read_ratio), "of all input tokens"],
        ["Read", model.grouped(one.read)], ["Written", model.grouped(one.written)], ["Uncached", model.grouped(one.uncached)], ["Output", model.grouped(one.output)],
        ["Jobs done", model.grouped(one.jobs_done)],
        ["A hold lasts at most", one.hold_max_ms ? model.duration(one.hold_max_ms) : "–"],
        ["Route", routeLink(one.route)], ["Pool", one.pool], ["Account", h("code", {}, one.budget)],
        ["Id", h("code", { class: "long" }, one.id)],
      ]),
      section("Its prefix", laneTable(one, prefix ? prefix.segments : [], now)),
      prefix ? revealed(prefix) : null,
      where ? section("Its places, minute by minute", placeTable(where)) : null,
      section("Last writers", writerTable(writers)),
      section("Bursts", burstTable({ bursts: ledger.bursts.filter((burst) => burst.family === one.id) }, false)),
      h("div", { class: "pair" },
        section(`Running (${model.grouped(running.total)})`, jobTable(running, "Running jobs", "None runs.")),
        section(`Waiting (${model.grouped(waiting.total)})`, jobTable(waiting, "Waiting jobs", "None waits."))),
    ];
  },
};

// ---- routes --------------------------------------------------------------------------

function paid(ledger, route, name) {
  const found = ledger.routes.find((one) => one.route === route);
  return found ? model.money(found[name]) : "–";
}

function paidColumns(ledger) {
  const under = (one, name, words) => h("span", { class: "detail under" }, `${words} ${paid(ledger, one.route, name)}`);
  const before = (one) => (ledger.routes.find((other) => other.route === one.route) || {});
  return ledger.week.cost > 0 ? [
    { label: "Paid this hour", number: true, cell: (one) => [paid(ledger, one.route, "this_hour"), h("span", { class: "detail under" }, `yesterday ${model.moneyOf(before(one).yesterday, before(one).first_ms, ledger.now_ms, 24)}`)] },
    { label: "Paid this week", number: true, cell: (one) => [paid(ledger, one.route, "week"), under(one, "avoidable", "avoidable")] }] : [];
}

export const routes = {
  title: "Routes",
  read: (at) => ({ page: `routes${query({ offset: param(at, "offset") })}`, ledger: ["ledger", 5000] }),
  show: (at, { page, ledger }, live) => [
    heading("Routes", h("span", { class: "quiet" }, `${model.grouped(page.total)} in memory`)),
    table("Routes", [
      { label: "Route", class: "name", cell: (one) => [h("a", { href: model.makeHash("route", one.route), class: "strong" }, one.route), live.unheld.includes(one.route) ? [" ", badge("held", "not held")] : null, one.seen_ms ? h("span", { class: "detail" }, `last job ${model.age(one.seen_ms, page.now_ms)} ago`) : null] },
      { label: "Versions", number: true, cell: (one) => [model.grouped(one.families - one.singles), one.singles ? h("span", { class: "detail under" }, `+ ${model.grouped(one.singles)} of one job`) : null] },
      { label: "Waiting", number: true, cell: (one) => [model.grouped(one.waiting), one.waiting > 0 ? h("span", { class: "detail under" }, `oldest ${model.age(one.oldest_ms, page.now_ms)}`) : null] },
      { label: "In flight", number: true, cell: (one) => model.grouped(one.running) },
      { label: "Jobs done", number: true, cell: (one) => model.grouped(one.jobs_done) },
      { label: "Prefix hits", number: true, cell: (one) => model.percent(one.prefix_hit_ratio) },
      { label: "Tokens read", number: true, cell: (one) => model.percent(one.token_read_ratio) },
      { label: "Read / written / uncached", number: true, class: "tokens", cell: (one) => `${model.compact(one.read)} / ${model.compact(one.written)} / ${model.compact(one.uncached)}` },
      ...paidColumns(ledger),
    ], page.routes, { empty: "No job has been admitted yet.", id: "route" }),
    pager(page.total, page.offset, page.limit, page.routes.length),
  ],
};

export const route = {
  title: "Route",
  parent: "routes",
  read: (at) => ({ page: `families${query({ route: at.id, show: "all", sort: "work", offset: param(at, "offset") })}`, routes: `routes${query({ route: at.id })}`, ledger: [`ledger${query({ route: at.id })}`, 5000, "maybe"], drift: [`drift${query({ route: at.id })}`, 15000, "maybe"] }),
  show: (at, { page, routes: found, ledger, drift }, live, may) => {
    const one = found.routes[0], alive = model.variants(page.families, live.now_ms);
    if (!one) return [heading(at.id), h("p", { class: "empty" }, "No job of this route is remembered.")];
    const unheld = live.unheld.includes(at.id);
    return [
      heading(at.id, may ? h("div", { class: "actions" }, unheld
        ? button("Hold again", "act", { path: "hold", body: JSON.stringify({ on: true, route: at.id }), done: "Its jobs are held again." })
        : button("Stop holding", "act", { path: "hold", body: JSON.stringify({ on: false, route: at.id }), ask: `Start every job of ${at.id} at once, paced? Each cold prefix of it is then written many times.`, done: "Its jobs are not held any more." })) : null),
      unheld ? h("div", { class: "why held" }, h("strong", {}, "Holding is off for this route"), h("p", {}, "Every job of it starts at once, paced; its prefixes are written more than once.")) : null,
      splitBox(ledger, alive),
      drift && drift.kind !== "none" ? driftBox(drift, ledger) : null,
      facts([["Waiting", model.grouped(one.waiting)], ["In flight", model.grouped(one.running)], ["Jobs done", model.grouped(one.jobs_done)],
        ["Prefix hits", model.percent(one.prefix_hit_ratio)], ["Tokens read", model.percent(one.token_read_ratio)],
        ["Read", model.grouped(one.read)], ["Written", model.grouped(one.written)], ["Uncached", model.grouped(one.uncached)],
        one.singles ? ["Families of one job", model.grouped(one.singles), "nobody shares their prefix"] : null,
        ledger && ledger.routes[0].variants > 1 ? ["Price of the split", model.money(ledger.routes[0].split_cost), `${ledger.routes[0].variants} variants`] : null,
        ...(ledger && ledger.week.cost > 0 ? [["Paid this hour", model.money(ledger.this_hour.cost)], ["Paid this week", model.money(ledger.week.cost)], ["Avoidable this week", model.money(ledger.week.avoidable)]] : [])]),
      ledger && ledger.versions.length ? section("What each version cost", versionTable(ledger)) : null,
      section("Versions in memory", table("Versions", [
        { label: "Version", class: "name", cell: (family) => [familyLink(family.id), family.tokens ? h("span", { class: "detail" }, `${model.grouped(family.tokens)} tokens`) : null] },
        { label: "State", cell: (family) => stateBadge(family, page.now_ms) },
        { label: "Share of jobs", number: true, cell: (family) => one.jobs_done ? model.percent(family.jobs_done / one.jobs_done) : "–" },
        ...familyColumns(page.now_ms, may).slice(2, 7),
        { label: "Last job", number: true, cell: (family) => `${model.age(family.seen_ms, page.now_ms)} ago` },
      ], page.families, { id: "id" }), pager(page.total, page.offset, page.limit, page.families.length)),
      ledger ? section("What was written, and why", causeTable(ledger), ledgerNotes(ledger, true)) : null,
      ledger ? section("Bursts", burstTable(ledger, false)) : null,
    ];
  },
};

// Versions side by side: for long they are variants, and there is a price for that.
function splitBox(ledger, alive) {
  const sums = ledger && ledger.routes[0], variants = ledger ? ledger.versions.filter((one) => one.variant) : [];
  if (sums && sums.variants > 1)
    return h("div", { class: "why held" }, h("strong", {}, `${sums.variants} variants are used side by side`),
      h("p", {}, "Each is written for itself: ", variants.map((one, index) => [index ? ", " : "", h("b", {}, `v${one.number}`), ` ${model.percent(one.share)} of the answers in ${model.grouped(one.writes)} writes`]), ". ",
        ledger.week.cost > 0 ? ["The split has cost ", h("b", {}, model.money(sums.split_cost)), " more than one version would have."] : "No price is known of these models."));
  const count = ledger ? ledger.versions.filter((one) => one.alive && !one.twin && one.number > 0).length : alive.length;
  return count > 1 ? h("div", { class: "why later" }, h("strong", {}, `${count} versions are alive`),
    h("p", {}, "Each is written for itself. After a deploy the old one runs dry; if both stay for ten minutes, they are variants, and the price of the split is shown here.")) : null;
}

// What the last change of a route was, to the byte, and what it has cost.
function driftBox(drift, ledger) {
  const newer = ledger && ledger.versions.find((one) => one.family === drift.newer), older = ledger && ledger.versions.find((one) => one.family === drift.older);
  const cause = ledger && ledger.week.causes.filter((one) => ["new_version", "drift"].includes(one.cause)).reduce((sum, one) => sum + one.extra, 0);
  return h("div", { class: "why held" }, h("strong", {}, `The last change: ${drift.kind}`),
    h("p", {}, newer && older ? [h("b", {}, `v${newer.number}`), " ", familyLink(drift.newer), " came on ", model.day(newer.first_ms), " beside ", h("b", {}, `v${older.number}`), " ", familyLink(drift.older), ". "] : null,
      `They differ in the ${drift.part} part from byte ${model.grouped(drift.byte)} on. ${["text", "length"].includes(drift.kind) ? "" : drift.fix}`),
    cause > 0 ? h("p", {}, `New versions and drift of this route have cost ${model.money(cause)} more than reading this week.`) : null,
    drift.newer_text !== undefined ? h("pre", {}, `${drift.older_text}\n${drift.newer_text}`) : null);
}

function versionTable(ledger) {
  return table("Versions by what they cost", [
    { label: "Version", cell: (one) => [h("b", {}, `v${one.number}`), " ", familyLink(one.family)] },
    { label: "Is", cell: (one) => one.variant ? badge("later", "a variant") : [one.alive ? badge("go", "alive") : badge("rest", "gone"), one.twin ? h("span", { class: "detail under" }, "same text elsewhere") : null] },
    ledger.versions.some((one) => one.place !== ledger.versions[0].place) ? { label: "Place", cell: (one) => one.place } : null,
    { label: "Share now", number: true, cell: (one) => one.alive ? model.percent(one.share) : "–" },
    ledger.versions.some((one) => one.change) ? { label: "What it changed", class: "name", cell: (one) => one.change ? [model.changeWords(one.change), ["text", "length"].includes(one.change.kind) ? null : h("span", { class: "detail" }, one.change.fix)] : h("span", { class: "quiet" }, "–") } : null,
    { label: "First seen", class: "time", cell: (one) => model.weekday(one.first_ms, true) },
    { label: "Last seen", class: "time", cell: (one) => model.weekday(one.last_ms, true) },
    { label: "Prefix", number: true, cell: (one) => one.tokens ? `${model.grouped(one.tokens)} tokens` : "–" },
    { label: "Answers", number: true, cell: (one) => model.grouped(one.answers) },
    { label: "Prefix hits", number: true, cell: (one) => model.percent(one.prefix_hit_ratio) },
    { label: "Writes", number: true, cell: (one) => model.grouped(one.writes) },
    { label: "Read / written", number: true, class: "tokens", cell: (one) => `${model.compact(one.read)} / ${model.compact(one.written)}` },
  ].filter(Boolean), ledger.versions, { id: "family" });
}

// ---- places --------------------------------------------------------------------------

function cellLines(one, now) {
  const load = [one.running ? `${model.grouped(one.running)} in flight` : "", one.waiting ? `${model.grouped(one.waiting)} wait` : "", one.drain_s ? `drained in ${model.estimate(one.drain_s)}` : ""].filter(Boolean).join(", ");
  return h("div", { class: "place" }, h("a", { href: model.makeHash("family", one.family) }, badge(model.placeTone(one), model.placeWord(one, now))),
    h("span", { class: "detail" }, `${model.grouped(one.jobs_done)} requests, ${model.percent(one.prefix_hit_ratio)} hits`),
    h("span", { class: "detail" }, `${model.compact(one.read)} read, ${model.compact(one.written)} written`),
    load ? h("span", { class: "detail" }, load) : null);
}

export const places = {
  title: "Places",
  read: (at) => ({ page: `places${query({ show: param(at, "show", "families"), q: param(at, "q"), everywhere: param(at, "everywhere"), offset: param(at, "offset") })}`, ledger: ["ledger", 5000] }),
  show: (at, { page, ledger }, live, may) => [
    heading("Places", h("span", { class: "quiet" }, `${model.grouped(page.total)} prefixes`)),
    h("p", { class: "quiet" }, "Where each prefix is kept. A place is an upstream: an account, or one replica. What was written at one place, no other can read."),
    page.everywhere > 0 && !param(at, "everywhere") ? h("div", { class: "why held" }, h("strong", {}, `${model.grouped(page.everywhere)} ${page.everywhere === 1 ? "prefix is" : "prefixes are"} kept at every place`),
      h("p", {}, "Each place has written them for itself. If load does not need it, send a route to fewer places. ", h("a", { href: "#/places?everywhere=1" }, "Show them"))) : null,
    h("form", { class: "filters", role: "search", "data-do": "search" },
      h("label", { class: "grow" }, h("span", {}, "Find"), h("input", { name: "q", type: "search", placeholder: "route, id, pool or account ( / )", value: param(at, "q", ""), "data-keep": "search", autocomplete: "off", "data-do": "filter" })),
      select("everywhere", "Show", [["", "all prefixes"], ["1", "those at every place"]], param(at, "everywhere", ""))),
    table("Prefixes by place", [
      { label: "Prefix", class: "name", cell: (one) => [h("a", { href: model.makeHash("route", one.route), class: "strong" }, one.route),
        one.everywhere ? [" ", badge("held", "at every place")] : null,
        h("span", { class: "detail" }, h("code", {}, shortId(one.prefix)), one.cells[0].tokens ? ` ${model.grouped(one.cells[0].tokens)} tokens` : "")] },
      ...page.places.map((place) => ({ label: place.place, cell: (one) => {
        const found = one.cells.filter((cell) => cell.place === place.place);
        return found.length ? found.map((cell) => cellLines(cell, page.now_ms)) : h("span", { class: "quiet" }, "·");
      } })),
    ], page.rows, { id: "prefix", empty: "No prefix is shared by two jobs yet." }),
    pager(page.total, page.offset, page.limit, page.rows.length),
    section("Load of each place", table("Places", [
      { label: "Place", cell: (one) => h("b", {}, one.place) },
      { label: "In flight", number: true, cell: (one) => model.grouped(one.running) },
      { label: "Waiting", number: true, cell: (one) => model.grouped(one.waiting) },
      { label: "Drained in", number: true, cell: (one) => model.estimate(one.drain_s) },
      { label: "Prefixes kept", number: true, cell: (one) => `${model.grouped(one.kept)} of ${model.grouped(one.families)}` },
      { label: "Requests", number: true, cell: (one) => model.grouped(one.jobs_done) },
      { label: "Prefix hits", number: true, cell: (one) => model.percent(one.prefix_hit_ratio) },
      { label: "Read / written / uncached", number: true, class: "tokens", cell: (one) => `${model.compact(one.read)} / ${model.compact(one.written)} / ${model.compact(one.uncached)}` },
      ledger.week.cost > 0 ? { label: "Price", number: true, cell: (one) => model.money((ledger.places.find((other) => other.place === one.place) || { ever: {} }).ever.cost) } : null,
    ].filter(Boolean), page.places, { id: "place", empty: "No upstream has been asked yet." })),
    section("Accounts", budgetTable(live, may)),
  ],
};

// ---- workers -------------------------------------------------------------------------

function drainsByRoute(drains) {
  const routes = new Map();
  for (const one of drains) {
    const route = one.route || shortId(one.family), sum = routes.get(route) || { route, family: one.family, ids: new Set(), running: 0 };
    routes.set(route, { ...sum, ids: sum.ids.add(one.family), running: sum.running + one.running, since_ms: Math.min(sum.since_ms || Infinity, one.since_ms || Infinity) });
  }
  return [...routes.values()].map((one) => ({ ...one, families: one.ids.size, since_ms: Number.isFinite(one.since_ms) ? one.since_ms : 0 })).sort((a, b) => b.running - a.running);
}

function drainWords(drains, now) {
  if (drains.length === 0) return h("span", { class: "quiet" }, "nothing");
  return drainsByRoute(drains).map((one, index) => [index ? ", " : "", one.families === 1 ? familyLink(one.family, one.route) : routeLink(one.route),
    h("span", { class: "detail" }, ` ${model.grouped(one.running)}${one.families > 1 ? ` in ${one.families} families` : ""}${one.since_ms ? `, for ${model.age(one.since_ms, now)}` : ""}`)]);
}

function workerButtons(one) {
  const path = `workers/${one.session}`, name = one.label || one.session;
  return [
    one.state === "running" ? button("Quiet", "act", { path: `${path}/quiet`, ask: `Let ${name} start nothing more? What it runs goes on.`, done: "It starts nothing more." }, { "aria-label": `Quiet ${name}` })
      : button("Resume", "act", { path: `${path}/resume`, done: "It claims jobs again." }, { "aria-label": `Resume ${name}` }),
    one.state === "stopping" ? null
      : [" ", button("Stop", "act", { path: `${path}/stop`, ask: `Let ${name} finish what it runs, and end?`, done: "It drains and ends." }, { class: "danger", "aria-label": `Stop ${name}` })],
  ];
}

export const workers = {
  title: "Pools and workers",
  read: (at) => ({ page: `workers${query({ offset: param(at, "offset") })}`, next: "families?show=busy&sort=work&limit=200" }),
  slow: true,
  show: (at, { page, next }, live, may) => {
    const pools = new Map();
    for (const one of page.workers) {
      const pool = pools.get(one.pool) || { name: one.pool, workers: 0, slots: 0, busy: 0, drains: [] };
      pools.set(one.pool, { ...pool, workers: pool.workers + 1, slots: pool.slots + one.slots, busy: pool.busy + one.busy, drains: [...pool.drains, ...one.drains] });
    }
    for (const one of next.pools) if (!pools.has(one.name)) pools.set(one.name, { name: one.name, workers: 0, slots: one.slots, busy: 0, drains: [] });
    const rows = [...pools.values()].map((pool) => ({ ...pool, waiting: next.families.filter((one) => one.pool === pool.name).reduce((sum, one) => sum + (one.waiting || 0), 0),
      later: next.families.filter((one) => one.pool === pool.name && one.blocked_kind === "drain order" && one.running === 0).slice(0, 3) }));
    return [
      heading("Pools and workers", h("span", { class: "quiet" }, `as of ${model.clock(page.now_ms)}`)),
      table("Pools", [
        { label: "Pool", cell: (one) => h("b", {}, one.name) },
        { label: "Workers", number: true, cell: (one) => one.workers ? model.grouped(one.workers) : badge("stuck", "none") },
        { label: "Busy of slots", number: true, cell: (one) => `${model.grouped(one.busy)} / ${model.grouped(one.slots)}` },
        { label: "Drains now", class: "drains", cell: (one) => drainWords(one.drains, page.now_ms) },
        { label: "Waiting", number: true, cell: (one) => model.grouped(one.waiting) },
        { label: "Next", cell: (one) => one.later.length ? one.later.map((family, index) => [index ? ", " : "", familyLink(family.id, family.route)]) : h("span", { class: "quiet" }, "–") },
      ], rows, { id: "name", empty: "No pool is known: no job has come and no worker has called." }),
      section(`Workers (${model.grouped(page.total)})`, table("Workers", [
        { label: "Worker", cell: (one) => [h("b", {}, one.label || "(no label)"), " ", h("span", { class: "detail" }, h("code", {}, shortId(one.session)))] },
        { label: "Pool", cell: (one) => one.pool },
        { label: "State", cell: (one) => [badge({ running: "go", quiet: "pause" }[one.state] || "later", one.state), one.unreached.map((name) => [" ", badge("stuck", `does not reach ${name}`)])] },
        { label: "Busy of slots", number: true, cell: (one) => `${model.grouped(one.busy)} / ${model.grouped(one.slots)}` },
        { label: "Drains now", class: "drains", cell: (one) => drainWords(one.drains, page.now_ms) },
        { label: "Writing", number: true, cell: (one) => one.writing ? badge("held", model.grouped(one.writing)) : "–" },
        { label: "Up for", number: true, cell: (one) => model.age(one.since_ms, page.now_ms) },
        may ? { label: "", class: "act", cell: workerButtons } : null,
      ].filter(Boolean), page.workers, { id: "session", empty: "No worker is alive: start one with warmq-worker." })),
      pager(page.total, page.offset, page.limit, page.workers.length),
      h("p", { class: "quiet" }, "A quiet worker starts nothing more and finishes what it runs. To stop means the same, and then to end, as by SIGTERM; it hears of it within 10 s."),
    ];
  },
};

// ---- jobs ----------------------------------------------------------------------------

const STATES = [["running", "running"], ["waiting", "waiting"], ["later", "delayed"], ["dead", "dead"]];

function whatOf(page) {
  if (page.state === "waiting") return [];
  if (page.state === "running") return [{ label: "As", cell: (one) => one.role }, { label: "Slot", cell: (one) => `${one.slot} of ${shortId(one.session)}` }];
  return [{ label: page.state === "later" ? "Due" : "Died", cell: (one) => model.day(one.time_ms) },
    { label: "Why", cell: (one) => [h("b", {}, one.reason || (page.state === "later" ? "not before then" : "unknown")), " ", h("span", { class: "detail" }, one.why || "")] },
    { label: "Attempts", number: true, cell: (one) => one.attempts || "0" }];
}

export const jobs = {
  title: "Jobs",
  read: (at) => ({ page: [`jobs${query({ state: param(at, "state", "running"), route: param(at, "route"), offset: param(at, "offset") })}`, 0, "empty"] }),
  slow: true,
  show: (at, { page }) => [
    heading("Jobs"),
    h("form", { class: "filters", role: "search", "data-do": "find-job" },
      h("label", { class: "grow" }, h("span", {}, "Find a job by its id"), h("input", { name: "id", type: "search", placeholder: "1764450000000-0 ( / )", "data-keep": "search", autocomplete: "off" })),
      h("button", { type: "submit" }, "Show"),
      h("label", { class: "grow" }, h("span", {}, "Route"), h("input", { name: "route", type: "search", placeholder: "all of them", value: param(at, "route", ""), "data-keep": "route", autocomplete: "off", "data-do": "filter" })),
      select("state", "State", STATES, param(at, "state", "running"))),
    page.wrong ? h("p", { class: "quiet" }, "Waiting jobs are listed by route: name one. Those of one prefix stand on the page of their family.") : null,
    page.searched ? h("p", { class: "quiet" }, `Of ${model.grouped(page.searched)} that were looked at. Of what the scheduler does not remember any more, the route is not known.`) : null,
    page.wrong ? null : table("Jobs", [
      { label: "Job", cell: (one) => h("a", { href: model.makeHash("job", one.id) }, h("code", {}, one.id)) },
      { label: "Family", cell: (one) => one.family ? familyLink(one.family, one.route || shortId(one.family)) : "–" },
      { label: "Enqueued", cell: (one) => `${model.age(one.enqueued_ms, page.now_ms)} ago` },
      ...whatOf(page),
    ], page.jobs, { id: "id", empty: `No job${param(at, "route") ? ` of this route` : ""} ${{ later: "is delayed", running: "runs", waiting: "waits", dead: "is dead" }[page.state]}.` }),
    page.wrong ? null : pager(page.total, page.offset, page.limit, page.jobs.length),
  ],
};

const TONES = { running: "go", waiting: "later", later: "later", dead: "stuck", done: "warm", cancelled: "rest", expired: "rest" };

export const job = {
  title: "Job",
  parent: "jobs",
  read: (at) => ({ job: `jobs/${at.id}` }),
  slow: true,
  show: (at, { job: one }, live, may) => [
    heading([h("span", {}, "Job "), h("code", {}, one.id)], may ? h("div", { class: "actions" },
      ["waiting", "running", "later"].includes(one.state) ? button("Cancel", "act", { path: `jobs/${one.id}/cancel`, ask: "End this job? Its result will say cancelled.", done: "Cancelled." }, { class: "danger" }) : null,
      one.state === "dead" ? button("Retry", "act", { path: `jobs/${one.id}/retry`, done: "It is queued again." }) : null) : null),
    h("p", {}, badge(TONES[one.state] || "rest", one.state), one.family || (one.past && one.past.family) ? [" in ", familyLink(one.family || one.past.family)] : null),
    (one.queues || []).map((queue, index) => [index === 0 && !(one.past && one.past.family) ? h("p", { class: "quiet" }, one.queues.length > 1 ? "It is in one of these queues of its route:" : "It is in this queue of its route:") : null,
      h("p", {}, familyLink(queue.id, `${queue.route} ${shortId(queue.id)}`), `: ${model.grouped(queue.waiting || 0)} wait, ${model.grouped(queue.running || 0)} run`), whyBox(queue, live.now_ms)]),
    section("Its story", h("ol", { class: "notes" }, model.story(one).map(([ms, sentence]) =>
      h("li", {}, h("time", {}, ms ? model.day(ms) : ""), h("span", {}, sentence))))),
    one.fields ? section("What it was enqueued with", facts(Object.entries(one.fields).map(([name, value]) => [name, value]))) : null,
    one.result ? section("Its result", h("pre", {}, JSON.stringify(one.result, null, 2)), one.result.body_hidden ? h("p", { class: "quiet" }, "Its body is shown to those who have the token, if scheduler.reveal is set.") : null) : null,
  ],
};

export const dead = {
  title: "Dead letters",
  read: (at) => ({ page: `jobs${query({ state: "dead", route: param(at, "route"), offset: param(at, "offset") })}` }),
  slow: true,
  show: (at, { page }, live, may) => [
    heading("Dead letters", may && page.total > 0 ? h("div", { class: "actions" },
      button("Choose all shown", "choose"),
      button("Retry chosen", "dead", { path: "dead/retry", done: "Queued again" }),
      param(at, "route") ? null : button("Retry all", "act", { path: "dead/retry", body: '{"all":true}', ask: `Queue all ${model.grouped(page.total)} dead jobs again, with their counters at 0?`, done: "Queued again." }),
      button("Drop chosen", "dead", { path: "dead/drop", ask: "Forget the chosen jobs for good, with what they asked?", done: "Dropped" }, { class: "danger" }),
      param(at, "route") ? null : button("Drop all", "act", { path: "dead/drop", body: '{"all":true}', ask: `Forget all ${model.grouped(page.total)} dead jobs for good, with what they asked?`, done: "Dropped." }, { class: "danger" })) : null),
    h("p", { class: "quiet" }, page.total ? `${model.grouped(page.total)} jobs ended without a result. They keep what they asked, until they are retried or dropped.` : ""),
    h("form", { class: "filters", role: "search", "data-do": "search" },
      h("label", { class: "grow" }, h("span", {}, "Route"), h("input", { name: "route", type: "search", placeholder: "all of them ( / )", value: param(at, "route", ""), "data-keep": "route", autocomplete: "off", "data-do": "filter" }))),
    table("Dead jobs", [
      may ? { label: h("span", { class: "hidden" }, "Chosen"), cell: (one) => h("input", { type: "checkbox", name: "dead", value: one.id, "aria-label": `Choose ${one.id}`, "data-keep": `dead-${one.id}` }) } : null,
      { label: "Job", cell: (one) => h("a", { href: model.makeHash("job", one.id) }, h("code", {}, one.id)) },
      { label: "Family", cell: (one) => one.family ? familyLink(one.family, one.route || shortId(one.family)) : "–" },
      { label: "Died", cell: (one) => model.day(one.time_ms) },
      { label: "Reason", cell: (one) => [h("b", {}, one.reason || "unknown"), " ", h("span", { class: "detail" }, one.why || "")] },
      { label: "Attempts", number: true, cell: (one) => one.attempts || "0" },
    ].filter(Boolean), page.jobs, { id: "id", empty: param(at, "route") ? "No dead job of this route." : "No job has died." }),
    pager(page.total, page.offset, page.limit, page.jobs.length),
  ],
};

export const VIEWS = { overview, families, routes, places, workers, jobs, dead, family, route, job };
