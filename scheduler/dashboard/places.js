// places.js - where each prefix is kept, the load of each place, the accounts.
import { h } from "./dom.js";
import * as model from "./model.js";
import { badge, button, heading, pager, param, query, section, select, shortId, table } from "./tables.js";

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

function cellLines(one, now) {
  const load = [one.running ? `${model.grouped(one.running)} in flight` : "", one.waiting ? `${model.grouped(one.waiting)} wait` : "", one.drain_s ? `drained in ${model.estimate(one.drain_s)}` : ""].filter(Boolean).join(", ");
  return h("div", { class: "place" }, h("a", { href: model.makeHash("family", one.family) }, badge(model.placeTone(one), model.placeWord(one, now))),
    one.jobs_done ? [h("span", { class: "detail" }, `${model.grouped(one.jobs_done)} requests, ${model.percent(one.prefix_hit_ratio)} hits`),
      h("span", { class: "detail" }, `${model.compact(one.read)} read, ${model.compact(one.written)} written`)] : h("span", { class: "detail" }, "no request yet"),
    load ? h("span", { class: "detail" }, load) : null);
}

export const places = {
  title: "Places",
  read: (at) => ({ page: `places${query({ show: param(at, "show", "families"), q: param(at, "q"), everywhere: param(at, "everywhere"), offset: param(at, "offset") })}`, ledger: ["ledger", 5000] }),
  show: (at, { page, ledger }, live, may) => [
    heading("Places", h("span", { class: "quiet" }, `${model.grouped(page.total)} prefixes`)),
    h("p", { class: "quiet" }, "Where each prefix is kept. A place is an upstream: an account, or one replica. What was written at one place, no other can read."),
    page.everywhere > 0 && !param(at, "everywhere") ? h("div", { class: "why held" }, h("strong", {}, `${model.grouped(page.everywhere)} ${page.everywhere === 1 ? "prefix is" : "prefixes are"} kept at every place`),
      h("p", {}, "Each place has written such a prefix for itself. If load does not need it, send a route to fewer places. ", h("a", { href: "#/places?everywhere=1" }, "Show them"))) : null,
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
      { label: "Tokens read / written / uncached", number: true, class: "tokens", cell: (one) => `${model.compact(one.read)} / ${model.compact(one.written)} / ${model.compact(one.uncached)}` },
      ledger.week.cost > 0 ? { label: "Price", number: true, cell: (one) => model.money((ledger.places.find((other) => other.place === one.place) || { ever: {} }).ever.cost) } : null,
    ].filter(Boolean), page.places, { id: "place", empty: "No upstream has been asked yet." })),
    section("Accounts", budgetTable(live, may)),
  ],
};
