// jobs.js - jobs by state, the story of one, and the dead ones.
import { h } from "./dom.js";
import * as model from "./model.js";
import { badge, button, facts, familyLink, heading, jobLink, pager, param, query, section, select, shortId, table, whyBox } from "./tables.js";

const STATES = [["running", "running"], ["waiting", "waiting"], ["later", "delayed"], ["dead", "dead"]];

function whatOf(page) {
  if (page.state === "waiting") return [];
  if (page.state === "running") return [{ label: "Runs as", cell: (one) => model.roleWord(one.role) }, { label: "Session, slot", cell: (one) => [h("code", {}, shortId(one.session)), `, ${one.slot}`] }];
  return [{ label: page.state === "later" ? "Due" : "Died", cell: (one) => model.day(one.time_ms) },
    { label: "Why", cell: (one) => [h("b", {}, one.reason || (page.state === "later" ? "not before then" : "unknown")), " ", h("span", { class: "detail" }, one.why || "")] },
    { label: page.state === "later" ? "So far" : "After", cell: (one) => model.triesWords(one) || (page.state === "later" ? "–" : "its first try") }];
}

export const jobs = {
  title: "Jobs",
  read: (at) => ({ page: [`jobs${query({ state: param(at, "state", "running"), route: param(at, "route"), offset: param(at, "offset") })}`, 0, "empty"] }),
  slow: true,
  fromRedis: true,
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
      { label: "Job", cell: jobLink },
      { label: "Family", cell: (one) => one.family ? familyLink(one.family, one.route || shortId(one.family)) : "–" },
      { label: "Enqueued", cell: (one) => one.enqueued_ms ? `${model.age(one.enqueued_ms, page.now_ms)} ago` : "–" },
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
  fromRedis: true,
  show: (at, { job: one }, live, may) => [
    heading([h("span", {}, "Job "), h("code", {}, one.id)], may ? h("div", { class: "actions" },
      ["waiting", "running", "later"].includes(one.state) ? button("Cancel", "act", { path: `jobs/${one.id}/cancel`, ask: "End this job? Its result will say cancelled.", done: "Cancelled." }, { class: "danger" }) : null,
      one.state === "dead" ? button("Retry", "act", { path: `jobs/${one.id}/retry`, done: "It is queued again." }) : null) : null),
    h("p", {}, badge(TONES[one.state] || "rest", one.state), one.family || (one.past && one.past.family) ? [" in ", familyLink(one.family || one.past.family, one.fields && one.fields.route ? `${one.fields.route} ${shortId(one.family || one.past.family)}` : null)] : null),
    (one.queues || []).map((queue, index) => [index === 0 && !(one.past && one.past.family) ? h("p", { class: "quiet" }, one.queues.length > 1 ? "It is in one of these queues of its route:" : "It is in this queue of its route:") : null,
      h("p", {}, familyLink(queue.id, `${queue.route} ${shortId(queue.id)}`), `: ${model.grouped(queue.waiting || 0)} wait, ${model.grouped(queue.running || 0)} run`), whyBox(queue, live.now_ms)]),
    section("Its story", h("ol", { class: "notes story" }, model.story(one).map(([ms, sentence]) =>
      h("li", {}, h("time", {}, ms ? model.day(ms) : ""), h("span", {}, sentence))))),
    one.fields ? section("What it was enqueued with", facts(Object.entries(one.fields).map(([name, value]) => [name, value]))) : null,
    one.result ? section("Its result", h("pre", {}, JSON.stringify(one.result, null, 2)), one.result.body_hidden ? h("p", { class: "quiet" }, "Its body is shown to those who have the token, if scheduler.reveal is set.") : null) : null,
  ],
};

export const dead = {
  title: "Dead letters",
  read: (at) => ({ page: `jobs${query({ state: "dead", route: param(at, "route"), offset: param(at, "offset") })}` }),
  slow: true,
  fromRedis: true,
  show: (at, { page }, live, may) => [
    heading("Dead letters", may && page.total > 0 ? h("div", { class: "actions" },
      button("Choose all shown", "choose"),
      button("Retry chosen", "dead", { path: "dead/retry", done: "Queued again" }),
      param(at, "route") ? null : button("Retry all", "act", { path: "dead/retry", body: '{"all":true}', ask: `Queue all ${model.grouped(page.total)} dead jobs again, with their counters at 0?`, done: "Queued again." }),
      button("Drop chosen", "dead", { path: "dead/drop", ask: "Forget the chosen jobs for good, with what they asked?", done: "Dropped" }, { class: "danger" }),
      param(at, "route") ? null : button("Drop all", "act", { path: "dead/drop", body: '{"all":true}', ask: `Forget all ${model.grouped(page.total)} dead jobs for good, with what they asked?`, done: "Dropped." }, { class: "danger" })) : null),
    h("p", { class: "quiet" }, page.total ? `${model.grouped(page.total)} jobs ended without a result, of ${model.grouped(live.counts.dead)} that died since the queue began. They keep what they asked, until they are retried or dropped.` : ""),
    h("form", { class: "filters", role: "search", "data-do": "search" },
      h("label", { class: "grow" }, h("span", {}, "Route"), h("input", { name: "route", type: "search", placeholder: "all of them ( / )", value: param(at, "route", ""), "data-keep": "route", autocomplete: "off", "data-do": "filter" }))),
    table("Dead jobs", [
      may ? { label: h("span", { class: "hidden" }, "Chosen"), cell: (one) => h("input", { type: "checkbox", name: "dead", value: one.id, "aria-label": `Choose ${one.id}`, "data-keep": `dead-${one.id}` }) } : null,
      { label: "Job", cell: (one) => h("a", { href: model.makeHash("job", one.id) }, h("code", {}, one.id)) },
      { label: "Family", cell: (one) => one.family ? familyLink(one.family, one.route || shortId(one.family)) : "–" },
      { label: "Died", cell: (one) => model.day(one.time_ms) },
      { label: "Reason", cell: (one) => [h("b", {}, one.reason || "unknown"), " ", h("span", { class: "detail" }, one.why || "")] },
      { label: "After", cell: (one) => model.triesWords(one) || "its first try" },
    ].filter(Boolean), page.jobs, { id: "id", empty: param(at, "route") ? "No dead job of this route." : "No job has died." }),
    pager(page.total, page.offset, page.limit, page.jobs.length),
  ],
};
