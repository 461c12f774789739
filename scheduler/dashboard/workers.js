// workers.js - pools, and who works for them.
import { h } from "./dom.js";
import * as model from "./model.js";
import { badge, button, familyLink, heading, pager, param, query, routeLink, section, shortId, table } from "./tables.js";

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
    h("span", { class: "detail" }, ` ${model.grouped(one.running)} ${one.running === 1 ? "job" : "jobs"}${one.families > 1 ? ` in ${one.families} families` : ""}${one.since_ms ? `, for ${model.age(one.since_ms, now)}` : ""}`)]);
}

function workerButtons(one) {
  const path = `workers/${one.session}`, name = one.label || one.session;
  return [
    one.state === "running" ? button("Quiet", "act", { path: `${path}/quiet`, ask: `Let ${name} start nothing more? What it runs goes on.`, done: "It starts nothing more." }, { "aria-label": `Quiet ${name}` })
      : button("Resume", "act", { path: `${path}/resume`, done: "It claims jobs again." }, { "aria-label": `Resume ${name}` }),
    one.state === "stopping" ? null
      : [" ", button("Stop", "act", { path: `${path}/stop`, ask: `Let ${name} finish what it runs, and end? It hears of it at its next beat, within 10 s.`, done: "It stops at its next beat." }, { class: "danger", "aria-label": `Stop ${name}` })],
  ];
}

export const workers = {
  title: "Pools and workers",
  read: (at) => ({ page: `workers${query({ offset: param(at, "offset") })}`, next: "families?show=busy&sort=work&limit=200" }),
  slow: true,
  fromRedis: true,
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
        { label: "State", cell: (one) => [badge({ running: "go", quiet: "pause" }[one.state] || "later", one.state), one.state === "stopping" ? h("span", { class: "detail under" }, "hears of it at its next beat") : null, one.unreached.map((name) => [" ", badge("stuck", `does not reach ${name}`)])] },
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
