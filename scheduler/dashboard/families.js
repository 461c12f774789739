// families.js - all families, and the page of one.
import { h } from "./dom.js";
import * as model from "./model.js";
import { burstTable } from "./money.js";
import { badge, button, facts, familyLink, heading, jobLink, pager, param, query, routeLink, section, select, shortId, spark, stateBadge, table, whyBox } from "./tables.js";

const SHOWN = [["families", "all but single jobs"], ["busy", "with work"], ["held", "held back"], ["singles", "of one job"], ["all", "everything"]];

// What can be done with one: `not` says why it cannot be done now.
export function familyActions(one) {
  const path = `families/${one.id}`, waiting = one.waiting || 0;
  return [
    one.paused ? { words: "Resume", path: `${path}/resume`, done: "Resumed.", does: "Its jobs start again." }
      : { words: "Pause", path: `${path}/pause`, done: "Paused.", does: "Nothing of it starts until it is resumed." },
    { words: "Warm", path: `${path}/warm`, done: "One request writes it now.", not: model.whyNotWarm(one),
      careful: true, does: "One request writes its prefix, ahead of its jobs. That costs one write, in vain if no job comes while the provider keeps it." },
    { words: "Cancel what waits", path: `${path}/cancel`, done: "Cancelled.", danger: true, not: waiting ? "" : "No job waits.",
      careful: true, does: `${waiting === 1 ? "The job that waits ends" : `All ${model.grouped(waiting)} waiting jobs of this family end`}${one.running ? "; those that run go on" : ""}.` },
  ];
}

function actionButton(one, name) {
  return button(one.words, "act", { path: one.path, done: one.done, ask: one.careful ? one.does : "" }, { class: one.danger ? "danger" : null, "aria-label": name ? `${one.words} ${name}` : null });
}

export function familyColumns(now, may) {
  return [
    { label: "Family", sort: "route", class: "name", cell: (one) => [h("a", { href: model.makeHash("family", one.id), class: "strong" }, one.route), h("span", { class: "detail" }, h("code", {}, shortId(one.id)), ` ${one.budget}`)] },
    { label: "State", sort: "state", cell: (one) => stateBadge(one, now) },
    { label: "Blocked on", sort: "blocked", class: "blocked", cell: (one) => one.waiting > 0 || one.paused
      ? [badge(model.blockedTone(one.blocked_kind), model.blockedShort(one)), h("span", { class: "detail" }, model.until(one, now) || model.blockedDetail(one))]
      : h("span", { class: "quiet" }, "–") },
    { label: "Waiting", sort: "waiting", number: true, class: "waiting", cell: (one) => [spark(one.backlog, "backlog of the last ten minutes"), h("b", {}, model.grouped(one.waiting || 0)), one.waiting > 0 ? h("span", { class: "detail under" }, `oldest ${model.age(one.oldest_ms, now)}`) : null] },
    { label: "In flight", sort: "running", number: true, cell: (one) => [model.grouped(one.running || 0), one.window ? h("span", { class: "detail" }, ` / ${model.grouped(one.window)}`) : null, one.drain_s === undefined ? null : h("span", { class: "detail under" }, `drained in ${model.estimate(one.drain_s)}`)] },
    { label: "Prefix hits", sort: "prefix_hit_ratio", number: true, cell: (one) => model.percent(one.prefix_hit_ratio) },
    { label: "Tokens read", sort: "token_read_ratio", number: true, cell: (one) => model.percent(one.token_read_ratio) },
    { label: "Tokens read / written / uncached", sort: "tokens", number: true, class: "tokens", cell: (one) => `${model.compact(one.read)} / ${model.compact(one.written)} / ${model.compact(one.uncached)}` },
    may ? { label: "", class: "act", cell: (one) => [actionButton(familyActions(one)[0], `${one.route} ${shortId(one.id)}`), " ",
      button("…", "more", { id: one.id }, { "aria-label": `What can be done with ${one.route} ${shortId(one.id)}`, "aria-haspopup": "dialog" })] } : null,
  ].filter(Boolean);
}

function familyTable(data, at, may, sortable) {
  return table("Families", familyColumns(data.now_ms, may), data.families, {
    sort: param(at, "sort", "work"), order: param(at, "order", "desc"), sortable, id: "id",
    empty: data.all.families === 0 ? "No job has come yet." : "No family matches. What was admitted long ago and has no work is forgotten." });
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
    h("p", { class: "quiet" }, "A family is the jobs of a route that share one prefix at one account: while one request writes it into the provider's cache, the others are held."),
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
    { label: "Job", cell: jobLink },
    { label: "Enqueued", cell: (one) => model.moment(one.enqueued_ms, page.now_ms) },
    { label: "Age", number: true, cell: (one) => model.age(one.enqueued_ms, page.now_ms) },
    page.state === "running" ? { label: "Runs as", cell: (one) => model.roleWord(one.role) } : null,
    page.state === "running" ? { label: "Session, slot", cell: (one) => [h("code", {}, shortId(one.session)), `, ${one.slot}`] } : null,
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

function writerTable({ writers }, now) {
  return table("Requests that wrote", [
    { label: "Reported", cell: (one) => model.moment(one.at_ms, now) },
    { label: "Was", cell: (one) => model.roleWord(one.role) },
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
        familyActions(one).filter((action) => !action.not).map((action) => actionButton(action))) : null),
      whyBox(one, now),
      facts([
        ["State", stateBadge(one, now)],
        ["Waiting", model.grouped(one.waiting || 0), one.waiting > 0 ? `oldest ${model.age(one.oldest_ms, now)}` : ""],
        ["In flight", model.grouped(one.running || 0), one.window ? `of ${model.grouped(one.window)} that the account may run` : ""],
        ["Drained in", model.estimate(one.drain_s), "at the pace of the last minute"],
        ["Prefix", one.tokens ? model.tokens(one.tokens) : "–"],
        ["Prefix hits", model.percent(one.prefix_hit_ratio), "jobs that read it, of those whose usage is known"],
        ["Tokens read", model.percent(one.token_read_ratio), "of all input tokens"],
        ["Read", model.tokens(one.read)], ["Written", model.tokens(one.written)], ["Uncached", model.tokens(one.uncached)], ["Output", model.tokens(one.output)],
        ["Jobs done", model.grouped(one.jobs_done)],
        ["A hold lasts at most", one.hold_max_ms ? model.duration(one.hold_max_ms) : "–"],
        ["Route", routeLink(one.route)], ["Pool", one.pool], ["Account", h("code", {}, one.budget)],
        ["Id", h("code", { class: "long" }, one.id)],
      ]),
      section("Its prefix", laneTable(one, prefix ? prefix.segments : [], now)),
      prefix ? revealed(prefix) : null,
      where ? section("Its places, minute by minute", placeTable(where)) : null,
      section("Last writers", writerTable(writers, now)),
      section("Bursts", burstTable({ now_ms: now, bursts: ledger.bursts.filter((burst) => burst.family === one.id) }, false)),
      h("div", { class: "pair" },
        section(`Running (${model.grouped(running.total)})`, jobTable(running, "Running jobs", "None runs.")),
        section(`Waiting (${model.grouped(waiting.total)})`, jobTable(waiting, "Waiting jobs", "None waits."))),
    ];
  },
};
