// What figures mean to people.  No browser: `node --test`.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

// Node 18 takes a `.js` file for CommonJS whatever stands in it; a browser does not.
const source = readFileSync(new URL("../../scheduler/dashboard/model.js", import.meta.url));
const model = await import(`data:text/javascript;base64,${source.toString("base64")}`);

test("numbers are grouped, and short where there is no room", () => {
  assert.equal(model.grouped(1234567), "1,234,567");
  assert.equal(model.grouped(0), "0");
  assert.equal(model.grouped(null), "–");
  assert.equal(model.compact(999), "999");
  assert.equal(model.compact(1000), "1 k");
  assert.equal(model.compact(5970000), "6 M");
  assert.equal(model.compact(795.95), "796");
  assert.equal(model.compact(0.25), "0.3");
});

test("durations have the unit that people would choose", () => {
  assert.equal(model.duration(999), "999 ms");
  assert.equal(model.duration(1500), "1.5 s");
  assert.equal(model.duration(45000), "45 s");
  assert.equal(model.duration(600000), "10 min");
  assert.equal(model.duration(7200000), "2 h");
  assert.equal(model.duration(3 * 86400000), "3 days");
  assert.equal(model.duration(undefined), "–");
  assert.equal(model.estimate(0), "< 1 s");
  assert.equal(model.estimate(2), "~ 2 s");
  assert.equal(model.estimate(undefined), "–");
});

test("a ratio that is not known is no zero", () => {
  assert.equal(model.percent(null), "–");
  assert.equal(model.percent(0), "0 %");
  assert.equal(model.percent(0.953), "95.3 %");
});

test("what blocks a family has a word, a tone and the number that binds", () => {
  const family = { blocked_kind: "budget", blocked_on: "output budget (90000 a minute, 8192 reserved by each: 10 at once)" };
  assert.equal(model.blockedShort(family), "output budget");
  assert.equal(model.blockedDetail(family), "90,000 a minute, 8,192 reserved by each: 10 at once");
  assert.equal(model.blockedTone("no worker"), "stuck");
  assert.equal(model.blockedWord("drain order"), "drained later");
  assert.equal(model.blockedTone("something new"), "rest");
  assert.match(model.until({ blocked_until_ms: 65000 }, 5000), /in 60 s\)$/);
  assert.equal(model.until({ blocked_until_ms: 0 }, 5000), "");
});

test("dollars have the digits that they deserve", () => {
  assert.equal(model.money(0), "$0");
  assert.equal(model.money(0.00123), "$0.0012");
  assert.equal(model.money(12.345), "$12.35");
  assert.equal(model.money(1234.5), "$1,235");
  assert.equal(model.money(null), "–");
});

test("causes are ordered by what they cost, with the figures of both spans", () => {
  const all = { causes: [{ cause: "first", cost: 1, written: 9, full: 0 }, { cause: "stampede", cost: 5, written: 3, full: 0 }] };
  const now = { causes: [{ cause: "first", cost: 0.5, written: 4, full: 0, extra: 0 }] };
  const rows = model.causes(now, all);
  assert.deepEqual(rows.map((one) => one.cause), ["stampede", "first"]);
  assert.equal(rows[0].now.written, 0);
  assert.equal(rows[1].now.written, 4);
  assert.equal(model.causeWord("new_cause"), "new_cause");
});

test("rates begin anew when a counter did", () => {
  assert.deepEqual(model.rates([0, 60000, 120000], [0, 30, 90]), [30, 60]);
  assert.deepEqual(model.rates([0, 60000, 120000], [50, 80, 10]), [30, null]);
  assert.equal(model.lastMinute([0, 5000], [0, 5]), null, "too early to say");
  assert.equal(model.lastMinute([0, 30000, 60000, 90000], [0, 10, 40, 60]), 50);
  assert.equal(model.lastMinute([], []), null);
});

test("what is said again is one line with its number, and a new version never is", () => {
  const items = [{ at_ms: 9000, text: "nothing starts for 59 s", budget: "a" }, { at_ms: 8000, text: "other" }, { at_ms: 5000, text: "nothing starts for 60 s", budget: "a" },
    { at_ms: 4000, text: "nothing starts for 60 s", budget: "b" }, { at_ms: 3000, kind: "version", words: "v2" }, { at_ms: 2000, kind: "version", words: "v1" }];
  assert.deepEqual(model.folded(items).map((one) => [one.text || one.words, one.times, one.since_ms]),
    [["nothing starts for 59 s", 2, 5000], ["other", 1, 8000], ["nothing starts for 60 s", 1, 4000], ["v2", 1, 3000], ["v1", 1, 2000]]);
  assert.equal(model.folded([{ at_ms: 900000, text: "a" }, { at_ms: 100000, text: "a" }]).length, 2, "long ago is another time");
  assert.match(model.timesWords({ times: 2, since_ms: 5000 }), /^, 2 times since \d\d:\d\d:\d\d$/);
  assert.equal(model.timesWords({ times: 1 }), "");
});

test("tokens say that they are tokens", () => {
  assert.deepEqual([0, 1, 14013, null].map(model.tokens), ["0 tokens", "1 token", "14,013 tokens", "–"]);
});

test("failures have words", () => {
  assert.equal(model.failureWords({ deferred: 0, retried: 0, unsent: 0, recovered: 0 }), "no try has failed");
  assert.equal(model.failureWords({ deferred: 1200, retried: 3, unsent: 0, recovered: 1 }), "tries so far: 1.2 k refused (429, 529), 3 failed, 1 lost with a worker");
  assert.equal(model.triesWords({ attempts: "3", deferrals: "1", recoveries: "0" }), "3 failed tries, 1 refusal (429, 529)");
  assert.equal(model.triesWords({}), "");
});

test("hashes carry whatever a route is called", () => {
  for (const id of ["a/b", "<script>", "ü ?&#=", "50%"]) {
    const at = model.parseHash(model.makeHash("route", id, { offset: 50, q: "" }));
    assert.equal(at.view, "route");
    assert.equal(at.id, id);
    assert.equal(at.query.get("offset"), "50");
    assert.equal(at.query.get("q"), null);
  }
  assert.equal(model.parseHash("").view, "overview");
});

test("a sparkline stays inside its box", () => {
  assert.equal(model.sparkline([5], 72, 18), "");
  for (const point of model.sparkline([0, 10, 5], 72, 18).split(" ")) {
    const [x, y] = point.split(",").map(Number);
    assert.ok(x >= 0 && x <= 72 && y >= 0 && y <= 18, point);
  }
});

test("a job tells its story in order", () => {
  const steps = model.story({ enqueued_ms: 5, state: "dead", dead_ms: 9, past: { attempts: "3", reason: "http_500" } });
  assert.equal(steps[0][0], 5);
  assert.match(steps[1][1], /3 failed tries/);
  assert.match(steps[2][1], /died: http_500/);
  assert.match(model.story({ enqueued_ms: 1, state: "running", slot: "3", session: "abc", role: "lead", delivery: 1 })[1][1], /slot 3 of session abc as writer/);
});

test("a job that was done says when each thing happened", () => {
  const steps = model.story({ enqueued_ms: 5000, state: "done", result: { state: "done", upstream: "main", sent_ms: 7500, first_ms: 200, total_ms: 900, delivery: 2, attempts: 1,
    usage: { read: 3000, written: 0, uncached: 1, output: 64 } } });
  assert.deepEqual(steps.map(([at]) => at), [5000, null, 7500, 7700, null, 8400]);
  assert.match(steps[1][1], /handed back before: 1 failed try\./);
  assert.match(steps[2][1], /start number 2\) left, 2\.5 s after it was enqueued/);
  assert.match(steps[4][1], /read 3,000 tokens, wrote 0, had 1 in full/);
  assert.match(model.story({ enqueued_ms: 1, state: "done", result: { state: "done", total_ms: 9 } })[1][1], /ended 9 ms after/, "an older result");
});

test("what is paid an hour goes on from the hour before", () => {
  const sums = (cost, causes = []) => ({ cost, causes });
  const ledger = { now_ms: 3600000 * 10 + 900000, // a quarter past
    this_hour: sums(1, [{ cause: "drift", extra: 0.5 }]), last_hour: sums(8, [{ cause: "drift", extra: 4 }, { cause: "stampede", extra: 8 }]),
    week: sums(9, [{ cause: "drift", avoidable: true }, { cause: "stampede", avoidable: true }, { cause: "first", avoidable: false }, { cause: "keepwarm", avoidable: true }]),
    routes: [{ route: "calm", first_ms: 0, this_hour: 0.25, last_hour: 1, yesterday: 1, week: 11 }, { route: "dear", first_ms: 0, this_hour: 2, last_hour: 0, yesterday: 0, week: 2, jump: { at_ms: 1, from: 0, to: 2 } }, { route: "idle", first_ms: 0, this_hour: 0, last_hour: 0, yesterday: 0, week: 0 }] };
  assert.equal(model.hourly(ledger, (one) => one.cost), 7);
  assert.deepEqual(model.avoidable(ledger).map((one) => [one.cause, one.now]), [["stampede", 6], ["drift", 3.5]]);
  const rows = model.spend(ledger);
  assert.deepEqual(rows.map((one) => one.route), ["dear", "calm"]);
  assert.equal(rows[1].now, 1);
  assert.ok(Math.abs(rows[1].average - 11 / 10.25) < 1e-9);
});

test("every cause that can be avoided has a remedy, and no other has", () => {
  for (const cause of ["stampede", "hold_limit", "proof_miss", "drift", "ttl_mismatch", "evicted_early", "other_place", "keepwarm", "prewarm_wasted", "false_split", "retry_waste"])
    assert.ok(model.remedy(cause).length > 10, cause);
  assert.equal(model.remedy("first"), "");
});

test("only what is cold and has no jobs may be written ahead; else it says why not", () => {
  assert.equal(model.whyNotWarm({ state: "cold", waiting: 0 }), "");
  assert.match(model.whyNotWarm({ state: "cold", waiting: 2 }), /Jobs wait/);
  assert.match(model.whyNotWarm({ state: "cold", waiting: 0, paused: true }), /paused/);
  assert.match(model.whyNotWarm({ state: "warm", waiting: 0 }), /warm/);
  assert.match(model.whyNotWarm({ state: "being written", waiting: 0 }), /being written/);
});

const HOUR = 3600000;

test("the hours of rest are zeros of a line, and a day is shown at least", () => {
  const now = 480000 * HOUR + 1234, hours = [{ at_ms: (480000 - 30) * HOUR, cost: 2 }, { at_ms: 480000 * HOUR, cost: 3 }];
  const [times, cost] = model.weekOf({ now_ms: now, hours }, ["cost"]);
  assert.equal(times.length, 31);
  assert.deepEqual([cost[0], cost[1], cost[30]], [2, 0, 3]);
  assert.equal(model.weekOf({ now_ms: now, hours: [] }, ["cost"])[0].length, 24);
});

test("an hour that was over before the first call is unknown, not free", () => {
  const now = 480000 * HOUR + 1234;
  assert.equal(model.moneyOf(0, now - 1000, now, 1), "–");
  assert.equal(model.moneyOf(0, now - HOUR, now, 1), "$0");
  assert.equal(model.moneyOf(0, now - 2 * HOUR, now, 24), "–");
  assert.equal(model.moneyOf(2, now - 25 * HOUR, now, 24), "$2.00");
});

test("jumps of all routes come in the order of time, and a change has its byte", () => {
  const ledger = { routes: [{ route: "a", jumps: [{ at_ms: 1 }] }, { route: "b", jumps: [{ at_ms: 3 }, { at_ms: 2 }] }] };
  assert.deepEqual(model.jumps(ledger).map((one) => one.route + one.at_ms), ["b3", "b2", "a1"]);
  assert.equal(model.changeWords({ kind: "date", part: "system", byte: 1234 }), "a date in the system part, from byte 1,234 on");
});

test("what is older than a day has its day, numbers in sentences are grouped, roles are words", () => {
  const now = new Date(2026, 10, 24, 14, 7, 12).getTime();
  assert.equal(model.moment(now - 3600000, now), "13:07:12");
  assert.equal(model.moment(now - 26 * 3600000, now), "Mon 23 12:07");
  assert.equal(model.moment(0, now), "–");
  assert.equal(model.groupedIn("allows 90000 output tokens a minute, until 14:07:12, at 5cad5205, of 12"),
    "allows 90,000 output tokens a minute, until 14:07:12, at 5cad5205, of 12");
  assert.equal(model.roleWord("lead"), "writer");
  assert.equal(model.roleWord("new one"), "new one");
});
