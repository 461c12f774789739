// routes.js - all routes, and the page of one: its versions and what they cost.
import { h } from "./dom.js";
import * as model from "./model.js";
import { familyColumns } from "./families.js";
import { burstTable, causeTable, ledgerNotes } from "./money.js";
import { badge, button, facts, familyLink, heading, pager, param, query, section, stateBadge, table } from "./tables.js";

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
    h("p", { class: "quiet" }, "A route is what your jobs are called, or their upstream and model. Its families are its versions: a deploy that changes the prompt makes a new one."),
    table("Routes", [
      { label: "Route", class: "name", cell: (one) => [h("a", { href: model.makeHash("route", one.route), class: "strong" }, one.route), live.unheld.includes(one.route) ? [" ", badge("held", "not held")] : null, one.seen_ms ? h("span", { class: "detail" }, `last job ${model.age(one.seen_ms, page.now_ms)} ago`) : null] },
      { label: "Versions", number: true, cell: (one) => [model.grouped(one.families - one.singles), one.singles ? h("span", { class: "detail under" }, `+ ${model.grouped(one.singles)} of one job`) : null] },
      { label: "Waiting", number: true, cell: (one) => [model.grouped(one.waiting), one.waiting > 0 ? h("span", { class: "detail under" }, `oldest ${model.age(one.oldest_ms, page.now_ms)}`) : null] },
      { label: "In flight", number: true, cell: (one) => model.grouped(one.running) },
      { label: "Jobs done", number: true, cell: (one) => model.grouped(one.jobs_done) },
      { label: "Prefix hits", number: true, cell: (one) => model.percent(one.prefix_hit_ratio) },
      { label: "Tokens read", number: true, cell: (one) => model.percent(one.token_read_ratio) },
      { label: "Tokens read / written / uncached", number: true, class: "tokens", cell: (one) => `${model.compact(one.read)} / ${model.compact(one.written)} / ${model.compact(one.uncached)}` },
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
        ["Read", model.tokens(one.read)], ["Written", model.tokens(one.written)], ["Uncached", model.tokens(one.uncached)],
        one.singles ? ["Families of one job", model.grouped(one.singles), "nobody shares their prefix"] : null,
        ledger && ledger.routes[0].variants > 1 ? ["Price of the split", model.money(ledger.routes[0].split_cost), `${ledger.routes[0].variants} variants`] : null,
        ...(ledger && ledger.week.cost > 0 ? [["Paid this hour", model.money(ledger.this_hour.cost)], ["Paid this week", model.money(ledger.week.cost)], ["Avoidable this week", model.money(ledger.week.avoidable)]] : [])]),
      ledger && ledger.versions.length ? section("Its versions: what each changed, read and wrote", versionTable(ledger)) : null,
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
  return h("div", { class: "why held" }, h("strong", {}, newer ? `The last change: ${drift.kind}` : `Drift: ${drift.kind}`),
    h("p", {}, newer && older ? [h("b", {}, `v${newer.number}`), " ", familyLink(drift.newer), " came on ", model.day(newer.first_ms), " beside ", h("b", {}, `v${older.number}`), " ", familyLink(drift.older), ". "] : ["No two jobs share their prefix. The last two that are nearly alike: ", familyLink(drift.newer), " and ", familyLink(drift.older), ". "],
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
