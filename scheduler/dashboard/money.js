// money.js - pieces of several views that are about what was paid, and why.
import { h } from "./dom.js";
import * as model from "./model.js";
import { badge, facts, familyLink, routeLink, table, tile } from "./tables.js";

export function moneyTiles(ledger) {
  if (!ledger.week.cost) return [];
  const top = model.avoidable(ledger)[0];
  return [
    tile("Dollars an hour", model.money(model.hourly(ledger, (sums) => sums.cost)), `last hour ${model.moneyOf(ledger.last_hour.cost, ledger.since_ms, ledger.now_ms, 1)}, this hour yesterday ${model.moneyOf(ledger.yesterday.cost, ledger.since_ms, ledger.now_ms, 24)}`, "", "#/routes"),
    tile("Avoidable an hour", model.money(model.hourly(ledger, (sums) => sums.avoidable)), top ? `mostly ${model.causeWord(top.cause)}` : "nothing to blame", top ? "amber" : ""),
    tile("Saved this week", model.money(ledger.week.saved), "by holding bursts, simulated", ledger.week.saved > 0 ? "green" : ""),
  ];
}

// What each route costs, dearest change first.
export function spendTable(ledger) {
  const rows = model.spend(ledger).slice(0, 8);
  return table("Dollars an hour, by route", [
    { label: "Route", class: "name", cell: (one) => routeLink(one.route) },
    { label: "Now", number: true, cell: (one) => h("b", {}, model.money(one.now)) },
    { label: "Yesterday", number: true, cell: (one) => model.moneyOf(one.yesterday, one.first_ms, ledger.now_ms, 24) },
    { label: "Week", number: true, cell: (one) => model.money(one.average) },
    { label: "Dearer", cell: (one) => one.jump ? [badge("held", `since ${model.weekday(one.jump.at_ms, true)}`), h("span", { class: "detail" }, `from ${model.money(one.jump.from)}`)] : h("span", { class: "quiet" }, "no") },
  ], rows, { id: "route", empty: "Nothing was paid yet." });
}

export function avoidableList(ledger) {
  const rows = model.avoidable(ledger).slice(0, 3);
  if (rows.length === 0) return h("p", { class: "empty" }, "Nothing that a better set-up avoids was paid in the last hour.");
  return h("ol", { class: "causes" }, rows.map((one) => h("li", { "data-key": one.cause }, h("b", {}, `${model.money(one.now)} an hour`), " ", badge("held", model.causeWord(one.cause)),
    h("span", { class: "detail" }, ` ${one.meaning} ${model.remedy(one.cause)}`))));
}

export function savedWords(ledger) {
  return h("p", { class: "saved" }, h("b", {}, model.money(ledger.week.saved)), " saved by holding this week ",
    h("span", { class: "detail" }, "What bursts have cost, against the same arrivals all started at once (simulated)."));
}

// What a route's step in price was: how much, since when, what came with it.
export function jumpBox(one) {
  const version = one.version, change = version && version.change;
  return h("div", { class: "why held", "data-key": `jump-${one.route}-${one.at_ms}` },
    h("strong", {}, `${model.weekday(one.at_ms, true)}: ${one.route} became dearer`),
    h("p", {}, routeLink(one.route), " went from ", h("b", {}, model.money(one.from)), " to ", h("b", {}, model.money(one.to)), " an hour",
      one.until_ms ? ` until ${model.weekday(one.until_ms, true)}` : "", ": ", h("b", {}, model.money(one.extra)), " more than before."),
    version ? h("p", {}, `Its version v${version.number} `, familyLink(version.family), ` came ${model.weekday(version.first_ms, true)}`,
      change ? [": ", h("b", {}, model.changeWords(change)), `. ${["text", "length"].includes(change.kind) ? "" : change.fix}`] : ".") : h("p", { class: "quiet" }, "No new version came then: look at its causes and at its load."));
}

// How long entries really live, what was sent ahead, what went past WarmQ.
export function lifetimeTable(ledger) {
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

export function aheadFacts(ledger) {
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
    { label: "Tokens written this hour", number: true, cell: (one) => model.grouped(one.now.written) },
    { label: "Tokens this week", number: true, cell: (one) => model.grouped(one.written) },
    { label: "Paid in full", number: true, cell: (one) => model.grouped(one.full) },
    priced ? { label: "Price", number: true, cell: (one) => model.money(one.cost) } : null,
    priced ? { label: "More than reading", number: true, cell: (one) => one.avoidable && one.extra > 0 ? h("span", { class: "amber" }, model.money(one.extra)) : model.money(one.extra) } : null,
  ].filter(Boolean), model.causes(ledger.this_hour, ledger.week), { id: "cause", empty: "Nothing was written yet." });
}

export function ledgerNotes(ledger, withSaved) {
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
    { label: "Began", cell: (one) => [model.moment(one.start_ms, ledger.now_ms), one.spike ? [" ", badge("held", "spike")] : null, one.open ? [" ", badge("later", "going on")] : null] },
    withRoute ? { label: "Route", cell: (one) => routeLink(one.route) } : null,
    { label: "Starts", number: true, cell: (one) => model.grouped(one.starts) },
    { label: "Writes", number: true, cell: (one) => [model.grouped(one.writes), one.extra_writes ? h("span", { class: "detail amber" }, ` ${model.grouped(one.extra_writes)} too many`) : null] },
    { label: "Read the prefix", number: true, cell: (one) => model.grouped(one.hits) },
    { label: "Readable after", number: true, cell: (one) => model.duration(one.readable_ms) },
    { label: "Held, all jobs", number: true, cell: (one) => model.duration(one.held_ms) },
    { label: "429 and 529", number: true, cell: (one) => model.grouped(one.refusals) },
    priced ? { label: "Price / all at once", number: true, cell: (one) => `${model.money(one.cost)} / ${model.money(one.naive_cost)}` } : null,
    { label: "Family", cell: (one) => familyLink(one.family) },
  ].filter(Boolean), ledger.bursts.slice(0, 12), { empty: "No burst yet: ten starts of one prefix within ten seconds, after a minute of rest." });
}
