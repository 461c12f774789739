// tables.js - pieces that several views are made of.
import { h } from "./dom.js";
import * as model from "./model.js";

export function badge(tone, ...words) {
  return h("span", { class: `badge ${tone}` }, h("span", { class: "dot", "aria-hidden": "true" }), words);
}

export function stateBadge(family, now) {
  return badge(model.stateTone(family.state), model.stateWord(family, now));
}

export function spark(values, label) {
  const points = model.sparkline(values, 72, 18);
  return points ? h("svg", { class: "spark", viewBox: "0 0 72 18", width: 72, height: 18, role: "img", "aria-label": label },
    h("polyline", { points })) : null;
}

export function shortId(id) {
  return id ? id.slice(0, 8) : "";
}

export function familyLink(id, words) {
  return h("a", { href: model.makeHash("family", id) }, words || h("code", {}, shortId(id)));
}

export function routeLink(route) {
  return h("a", { href: model.makeHash("route", route) }, route);
}

// A warm-up is a request of its own and no job: it has no story.
export function jobLink(one) {
  return one.enqueued_ms ? h("a", { href: model.makeHash("job", one.id) }, h("code", {}, one.id)) : h("span", { class: "quiet" }, "no job: it writes a prefix ahead");
}

// A page that acts shows its buttons only to those who may.
export function button(words, action, data, more) {
  const attributes = { type: "button", "data-do": action, ...more };
  for (const [name, value] of Object.entries(data || {})) attributes[`data-${name}`] = value;
  return h("button", attributes, words);
}

export function tile(label, value, detail, tone, href) {
  const inside = [h("span", { class: "label" }, label),
    h("span", { class: `figure ${tone || ""}` }, value),
    h("span", { class: "detail" }, detail || "\u00a0")];
  return href ? h("a", { class: "tile", href }, inside) : h("div", { class: "tile" }, inside);
}

// columns: [{ key, label, sort, number, cell(row) }]; rows keep their node by `id`.
export function table(caption, columns, rows, options) {
  const { sort, order, sortable, empty, id } = options || {};
  const head = columns.map((column) => {
    const isSorted = sortable && column.sort && column.sort === sort;
    const label = sortable && column.sort
      ? h("button", { type: "button", class: "sort", "data-do": "sort", "data-sort": column.sort },
        column.label, h("span", { class: "arrow", "aria-hidden": "true" }, isSorted ? (order === "asc" ? "▲" : "▼") : ""))
      : column.label;
    return h("th", { scope: "col", class: [column.number ? "number" : "", column.class === "tokens" ? "tokens" : ""].join(" ").trim() || null,
                     "aria-sort": isSorted ? (order === "asc" ? "ascending" : "descending") : null }, label);
  });
  const body = rows.map((row) => h("tr", { "data-key": id ? row[id] : null, "data-row": id ? row[id] : null },
    columns.map((column) => h("td", { class: [column.number ? "number" : "", column.class || ""].join(" ").trim() || null,
                                      "data-label": typeof column.label === "string" ? column.label : null },
      h("div", { class: "cell" }, column.cell(row))))));
  if (rows.length === 0)
    return h("p", { class: "empty" }, empty || "Nothing here.");
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
    h("table", {}, h("caption", { class: "hidden" }, caption),
      h("thead", {}, h("tr", {}, head)), h("tbody", {}, body)));
}

export function pager(total, offset, limit, shown) {
  if (total <= limit && offset === 0) return null;
  return h("div", { class: "pager" },
    button("← Previous", "page", { offset: Math.max(0, offset - limit) }, { disabled: offset === 0 }),
    h("span", {}, `${model.grouped(total === 0 ? 0 : offset + 1)} to ${model.grouped(offset + shown)} of ${model.grouped(total)}`),
    button("Next →", "page", { offset: offset + limit }, { disabled: offset + limit >= total }));
}

export function facts(pairs) {
  return h("dl", { class: "facts" }, pairs.filter(Boolean).map(([name, value, detail]) =>
    h("div", {}, h("dt", {}, name), h("dd", {}, value, detail ? h("span", { class: "detail" }, detail) : null))));
}

export function section(title, ...children) {
  return h("section", {}, h("h2", {}, title), children);
}

// The one sentence that a family's page begins with, and what to do.
export function whyBox(family, now) {
  const tone = family.waiting > 0 || family.paused ? model.blockedTone(family.blocked_kind) : "rest";
  const extra = [model.blockedDetail(family), model.until(family, now)].filter(Boolean).join(" · ");
  return h("div", { class: `why ${tone}` },
    h("strong", {}, family.waiting > 0 || family.paused ? model.blockedShort(family) : "nothing waits"),
    h("p", {}, family.waiting > 0 || family.paused ? model.groupedIn(family.why) : family.running > 0 ? `What came of it runs: ${model.grouped(family.running)}.` : family.seen_ms ? `Its last job came ${model.age(family.seen_ms, now)} ago.` : "Nothing came yet."),
    extra ? h("p", { class: "detail" }, extra) : null,
    family.advice ? h("p", { class: "advice" }, `Advice: ${family.advice}.`) : null);
}

export const query = (values) => {
  const text = new URLSearchParams(Object.entries(values).filter(([, value]) => value !== "" && value !== null && value !== undefined)).toString();
  return text ? `?${text}` : "";
};
export const param = (at, name, fallback) => at.query.get(name) || fallback;
export const heading = (title, ...more) => h("div", { class: "heading" }, h("h1", {}, title), more);

export function select(name, label, options, chosen) {
  return h("label", {}, h("span", {}, label), h("select", { name, "data-do": "filter" },
    options.map(([value, words]) => h("option", { value, selected: value === chosen }, words))));
}
