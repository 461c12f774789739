// model.js - what figures mean to people: words, units, tones.  No DOM, no network; it is
// tested by `node --test`.

export function grouped(value) {
  if (value === null || value === undefined) return "–";
  return String(Math.round(value)).replace(/\B(?=(\d{3})+(?!\d))/g, ",");
}

// Numbers of four digits and more in a sentence of the scheduler's, as elsewhere on the page.
export function groupedIn(text) {
  return text.replace(/(?<![\w:.-])\d{4,}(?![\w:.-]*\w)/g, (digits) => grouped(Number(digits)));
}

export function tokens(count) {
  return count === null || count === undefined ? "–" : `${grouped(count)} ${count === 1 ? "token" : "tokens"}`;
}

export function compact(value) {
  if (value === null || value === undefined) return "–";
  for (const [size, unit] of [[1e9, "G"], [1e6, "M"], [1e3, "k"]]) {
    if (value >= size) {
      const scaled = value / size;
      return (scaled >= 100 ? scaled.toFixed(0) : scaled.toFixed(1).replace(/\.0$/, "")) + " " + unit;
    }
  }
  return String(value < 10 ? Math.round(value * 10) / 10 : Math.round(value));
}

export function duration(ms) {
  if (ms === null || ms === undefined || ms < 0) return "–";
  if (ms < 1000) return `${Math.round(ms)} ms`;
  const seconds = ms / 1000;
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  if (seconds < 100) return `${Math.round(seconds)} s`;
  if (seconds < 6000) return `${Math.round(seconds / 60)} min`;
  if (seconds < 172800) return `${Math.round(seconds / 3600)} h`;
  return `${Math.round(seconds / 86400)} days`;
}

// How long until a backlog is gone: an estimate, so never finer than a second.
export function estimate(seconds) {
  return seconds === undefined || seconds === null ? "–" : seconds < 1 ? "< 1 s" : `~ ${duration(Math.max(1, Math.round(seconds)) * 1000).replace(".0", "")}`;
}

// 0.953 -> "95.3 %"; null: nothing is known yet.
export function percent(ratio) {
  return ratio === null || ratio === undefined ? "–" : `${(ratio * 100).toFixed(1).replace(/\.0$/, "")} %`;
}

// Dollars with as many digits as they deserve.
export function money(dollars) {
  if (dollars === null || dollars === undefined) return "–";
  if (dollars === 0) return "$0";
  if (dollars < 0.01) return `$${dollars.toPrecision(2)}`;
  return dollars < 100 ? `$${dollars.toFixed(2)}` : `$${grouped(dollars)}`;
}

const CAUSES = {
  first: "first of its kind", expired: "expired", stampede: "stampede", hold_limit: "hold limit", proof_miss: "proof missed",
  new_version: "new version", drift: "drift", ttl_mismatch: "lived too short", evicted_early: "evicted early", other_place: "warm elsewhere",
  tail: "behind the prefix", server_tool: "provider's tools", keepwarm: "keep-warm", prewarm_wasted: "warmed for nobody",
  false_split: "false split", retry_waste: "wasted attempt", unknown: "unknown",
};

export function causeWord(cause) {
  return CAUSES[cause] || cause;
}

// The causes of two spans of time, the dearest first (by tokens where nothing is priced).
export function causes(now, all) {
  const rows = all.causes.map((one) => ({ ...one, now: now.causes.find((other) => other.cause === one.cause) || { written: 0, full: 0, cost: 0, extra: 0 } }));
  return rows.sort((a, b) => b.cost - a.cost || b.written + b.full - a.written - a.full);
}

// Dollars an hour now: this hour as far as it is, and of the one before what it lacks.
export function hourly(ledger, of) {
  const left = 1 - (ledger.now_ms % 3600000) / 3600000;
  return of(ledger.this_hour) + of(ledger.last_hour) * left;
}

// What each route costs an hour, the largest difference to yesterday first.
export function spend(ledger) {
  const left = 1 - (ledger.now_ms % 3600000) / 3600000;
  return ledger.routes.map((one) => ({ route: one.route, first_ms: one.first_ms, now: one.this_hour + one.last_hour * left, yesterday: one.yesterday, jump: one.jump,
    average: one.week / Math.max(1, Math.min(168, (ledger.now_ms - one.first_ms) / 3600000)) }))
    .filter((one) => one.now > 0 || one.yesterday > 0 || one.average > 0)
    .sort((a, b) => (b.jump ? 1 : 0) - (a.jump ? 1 : 0) || Math.abs(b.now - b.yesterday) - Math.abs(a.now - a.yesterday) || b.now - a.now);
}

// Causes that a better set-up avoids, by what they cost an hour now.
export function avoidable(ledger) {
  const extra = (cause) => (sums) => (sums.causes.find((one) => one.cause === cause) || { extra: 0 }).extra;
  return ledger.week.causes.filter((one) => one.avoidable).map((one) => ({ ...one, now: hourly(ledger, extra(one.cause)) }))
    .filter((one) => one.now > 0).sort((a, b) => b.now - a.now);
}

const REMEDIES = {
  stampede: "Is holding off, or does traffic pass WarmQ by?", hold_limit: "A longer hold_max helps, if the jobs can wait, and so does holding that is on.",
  proof_miss: "The lag is learned; it ends by itself.", drift: "Move what changes behind the shared part: the route's page names the byte.",
  ttl_mismatch: "Does a proxy drop the longer life?", evicted_early: "A few are normal; many: others use this cache, or the account routes badly.",
  other_place: "Send the route to fewer places.", keepwarm: "Ping earlier, or let it expire.", prewarm_wasted: "Warm later, or not at all.",
  false_split: "Send the same setting: the provider does not tell the versions apart.", retry_waste: "Look at time-outs and at cancelled jobs.",
};

export function remedy(cause) {
  return REMEDIES[cause] || "";
}

// So many requests of others that it is worth a word.
export function isForeign(budget) {
  return budget.requests_foreign >= 10 && budget.requests_foreign * 10 >= budget.requests_own;
}

const two = (value) => String(value).padStart(2, "0");

export function clock(ms) {
  if (!ms) return "–";
  const at = new Date(ms);
  return `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
}

export function day(ms) {
  const at = new Date(ms);
  return `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())} ${clock(ms)}`;
}

const DAYS = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];

// "Tue 24" at midnight, else "06:00"; in full "Tue 24 06:12".
export function weekday(ms, full) {
  const at = new Date(ms), date = `${DAYS[at.getDay()]} ${at.getDate()}`;
  if (full) return `${date} ${clock(ms).slice(0, 5)}`;
  return at.getHours() || at.getMinutes() ? clock(ms).slice(0, 5) : date;
}

// Of the last day: "14:07:12", before: "Tue 24 14:07".
export function moment(ms, now) {
  return ms && now - ms > 20 * 3600000 ? weekday(ms, true) : clock(ms);
}

const HOUR = 3600000;

// The hours of a ledger as columns, those of rest with zeros: a day at least.
export function weekOf(ledger, names) {
  const last = ledger.now_ms - ledger.now_ms % HOUR;
  const first = Math.min(ledger.hours.length ? ledger.hours[0].at_ms : last, last - 23 * HOUR);
  const times = [], columns = names.map(() => []);
  const known = new Map(ledger.hours.map((one) => [one.at_ms, one]));
  for (let at = first; at <= last; at += HOUR) {
    times.push(at / 1000);
    names.forEach((name, index) => columns[index].push(known.has(at) ? known.get(at)[name] : 0));
  }
  return [times, ...columns];
}

// Of an hour that was over before the first call, so many hours ago, nothing is known.
export function moneyOf(dollars, first_ms, now_ms, hours) {
  return first_ms > 0 && first_ms < now_ms - now_ms % HOUR - (hours - 1) * HOUR ? money(dollars) : "–";
}

// What became dearer this week, the newest first.
export function jumps(ledger) {
  return ledger.routes.flatMap((one) => one.jumps.map((jump) => ({ ...jump, route: one.route })))
    .sort((a, b) => b.at_ms - a.at_ms);
}

// "a date in the system part, from byte 1,234 on"
export function changeWords(change) {
  const what = { text: "the text differs", length: "one goes on where the other ends", clock: "a time", date: "a date", id: "an identifier", number: "a number", marker: "a cache marker", setting: "a setting", tools: "the tools differ" }[change.kind] || change.kind;
  return `${what} in the ${change.part} part, from byte ${grouped(change.byte)} on`;
}

// What stands between a family and its next start: what the page calls it, and how loud.
const BLOCKED = {
  nothing: ["running", "go"],
  "no work": ["nothing waits", "rest"],
  paused: ["paused", "pause"],
  "no worker": ["no worker", "stuck"],
  parked: ["account parked", "stuck"],
  "being written": ["being written", "held"],
  checking: ["checking", "held"],
  elected: ["waits for a slot", "later"],
  "drain order": ["drained later", "later"],
  slots: ["all slots busy", "go"],
  pace: ["pace", "later"],
  window: ["window full", "budget"],
  budget: ["budget", "budget"],
};

// What a request is for its prefix, in words for people who run a fleet.
const ROLES = { plain: "reader", lead: "writer", canary: "first reader", ticket: "warm-up", "hold limit": "held too long", now: "never held" };

export function roleWord(role) {
  return ROLES[role] || role;
}

export const BLOCKED_KINDS = Object.keys(BLOCKED);

export function blockedWord(kind) {
  return (BLOCKED[kind] || [kind])[0];
}

export function blockedTone(kind) {
  return (BLOCKED[kind] || ["", "rest"])[1];
}

// "output budget (90000 a minute, …)" -> "output budget"; else the word of its kind.
export function blockedShort(family) {
  if (family.blocked_kind === "budget" && family.blocked_on)
    return family.blocked_on.replace(/ \(.*/, "");
  return blockedWord(family.blocked_kind);
}

// The number that binds, if there is one: "90,000 a minute, 8,192 reserved by each".
export function blockedDetail(family) {
  const found = /\((.*)\)$/.exec(family.blocked_on || "");
  return found ? groupedIn(found[1]) : "";
}

export function until(family, now) {
  const ms = family.blocked_until_ms;
  return ms && ms > now ? `until ${clock(ms)} (in ${duration(ms - now)})` : "";
}

export function stateTone(state) {
  if (!state) return "rest";
  if (state === "warm") return "warm";
  if (state === "being written") return "held";
  if (state === "checking") return "held";
  if (state === "cold") return "cold";
  if (state === "off") return "stuck";
  return "rest";
}

export function stateWord(family, now) {
  if (family.state === "warm" && family.warm_until_ms)
    return family.warm_until_ms > 9e13 ? "warm" : family.warm_until_ms > now
      ? `warm until ${clock(family.warm_until_ms)}` : "warm (about to expire)";
  return family.state || "–";
}

// A prefix at one place: is it there, and for how long has it been?
export function placeTone(cell) {
  return cell.kept ? "warm" : cell.state === "being written" || cell.state === "checking" ? "held" : "cold";
}

export function placeWord(cell, now) {
  if (cell.kept) return cell.written_ms ? `warm for ${duration(Math.max(0, now - cell.written_ms))}` : "warm";
  if (cell.state === "warm" || cell.state === "idle") return "cold";
  return cell.state || "cold";
}

export function age(ms, now) {
  return ms ? duration(Math.max(0, now - ms)) : "–";
}

// Tries that gave no answer and whose job goes on, since the queue began: of which kinds.
export function failureWords(counts) {
  const kinds = [[counts.deferred, "refused (429, 529)"], [counts.retried, "failed"], [counts.unsent, "not sent"], [counts.recovered, "lost with a worker"]];
  const words = kinds.filter(([count]) => count > 0).sort((a, b) => b[0] - a[0]).map(([count, what]) => `${compact(count)} ${what}`);
  return words.length ? `tries so far: ${words.join(", ")}` : "no try has failed";
}

// How often a job was handed back: "3 failed tries, 1 refusal"; "" if never.
export function triesWords(one) {
  const kinds = [[one.attempts, "failed try", "failed tries"], [one.deferrals, "refusal (429, 529)", "refusals (429, 529)"], [one.recoveries, "death of its worker", "deaths of its worker"]];
  return kinds.filter(([count]) => Number(count) > 0).map(([count, single, many]) => `${grouped(Number(count))} ${Number(count) === 1 ? single : many}`).join(", ");
}

const FOLD_MS = 600000;

// What is said again within ten minutes is one line: the latest, how often, since when.
export function folded(items) {
  const lines = new Map(), found = [];
  for (const one of items) { // the latest first
    const key = [one.kind, one.level, one.route, one.budget, one.family, one.words || one.text].join("|").replace(/\d+/g, "#");
    const line = lines.get(key);
    if (line && line.since_ms - one.at_ms < FOLD_MS && !["version", "placed", "spike"].includes(one.kind)) {
      line.times += 1;
      line.since_ms = one.at_ms;
    } else {
      lines.set(key, { ...one, times: 1, since_ms: one.at_ms });
      found.push(lines.get(key));
    }
  }
  return found;
}

export function timesWords(line) {
  return line.times > 1 ? `, ${grouped(line.times)} times since ${clock(line.since_ms)}` : "";
}

// Differences of a counter per minute; a restart of the scheduler begins anew.
export function rates(times, counters) {
  const result = [];
  for (let i = 1; i < times.length; i++) {
    const minutes = (times[i] - times[i - 1]) / 60000;
    const more = counters[i] - counters[i - 1];
    result.push(minutes > 0 && more >= 0 ? more / minutes : null);
  }
  return result;
}

// The last minute of a counter, per minute, or null if less than 10 s are known.
export function lastMinute(times, counters) {
  const last = times.length - 1;
  let first = last;
  while (first > 0 && times[last] - times[first] < 60000) first--;
  const minutes = last > 0 ? (times[last] - times[first]) / 60000 : 0;
  const more = last > 0 ? counters[last] - counters[first] : 0;
  return minutes < 1 / 6 || more < 0 ? null : more / minutes;
}

// Points of a line that fits into width x height; "" for fewer than two values.
export function sparkline(values, width, height) {
  if (!values || values.length < 2) return "";
  const most = Math.max(...values, 1);
  return values.map((value, index) =>
    `${(index * width / (values.length - 1)).toFixed(1)},${(height - 1 - value * (height - 2) / most).toFixed(1)}`).join(" ");
}

// "#/families?sort=waiting&offset=50" -> { view, id, query }
export function parseHash(hash) {
  const [path, text] = hash.replace(/^#\/?/, "").split("?");
  const [view, ...rest] = path.split("/");
  return { view: view || "overview", id: rest.map(decodeURIComponent).join("/"),
           query: new URLSearchParams(text || "") };
}

export function makeHash(view, id, query) {
  const text = new URLSearchParams(Object.entries(query || {}).filter(([, value]) =>
    value !== "" && value !== null && value !== undefined)).toString();
  return `#/${view}${id ? `/${encodeURIComponent(id)}` : ""}${text ? `?${text}` : ""}`;
}

// Versions of a route that have work or had some in the last ten minutes.
export function variants(families, now) {
  return families.filter((family) => !family.single &&
    (family.waiting > 0 || family.running > 0 || now - family.seen_ms < 600000));
}

// What happened to a job, in order: [time or null, sentence].
export function story(job) {
  const fields = job.fields || {};
  const steps = [[job.enqueued_ms, `It was enqueued${fields.upstream ? ` for ${fields.upstream}` : ""}${fields.route ? `, route ${fields.route}` : ""}.`]];
  const past = job.past || {};
  const back = triesWords(past);
  if (back) steps.push([null, `It was handed back: ${back}.`]);
  if (past.reason && job.state !== "dead") steps.push([null, `The last time because of ${past.reason}. ${past.why || ""}`.trim()]);
  if (job.state === "later") steps.push([job.due_ms, "It is due then."]);
  if (job.state === "running") steps.push([null, `It runs now in slot ${job.slot} of session ${job.session} as ${roleWord(job.role)}, delivery ${job.delivery}.`]);
  if (job.state === "waiting") steps.push([null, past.family ? "It waits in the queue of its family, before those that came later." : "It waits in the queue of its family."]);
  if (job.state === "dead") steps.push([job.dead_ms, `It died: ${past.reason || "unknown"}. ${past.why || ""}`.trim()]);
  const result = job.result, sent = result && result.sent_ms;
  const at = (ms) => (sent && ms !== undefined ? sent + ms : null);
  if (result && !back && result.attempts > 0) steps.push([null, `It was handed back before: ${triesWords(result)}.`]);
  if (sent) steps.push([sent, `Its request${result.delivery > 1 ? ` (the job's start number ${result.delivery})` : ""} left${job.enqueued_ms ? `, ${duration(Math.max(0, sent - job.enqueued_ms))} after it was enqueued` : ""}.`]);
  if (result && result.first_ms !== undefined) steps.push([at(result.first_ms), `Its request${result.model ? ` for ${result.model}` : ""}${result.upstream ? ` at ${result.upstream}` : ""} had its first event after ${duration(result.first_ms)}.`]);
  if (result && result.usage) steps.push([null, `It read ${tokens(result.usage.read)}, wrote ${grouped(result.usage.written)}, had ${grouped(result.usage.uncached)} in full and ${grouped(result.usage.output)} as its answer.`]);
  if (result) steps.push([at(result.total_ms), `It ended${result.total_ms !== undefined ? ` ${duration(result.total_ms)} after it was sent` : ""}: ${result.state || job.state}${result.reason ? `, ${result.reason}` : ""}${result.text ? ` (${result.text})` : ""}${result.delivery > 1 ? `, in delivery ${result.delivery}` : ""}.`]);
  else if (["cancelled", "expired"].includes(job.state)) steps.push([null, `It was ${job.state}.`]);
  if (job.deadline_ms) steps.push([job.deadline_ms, "Its deadline."]);
  return steps;
}

// Why writing its prefix ahead of its jobs makes no sense; "" if it may.  The scheduler has
// the last word.
export function whyNotWarm(family) {
  if (family.paused) return "It is paused.";
  if (family.waiting) return "Jobs wait: the first of them writes it.";
  if (family.state === "warm") return "It is warm.";
  return family.state === "cold" ? "" : `It is ${family.state || "not known"}.`;
}
