"""The log of a bad day: each line is one object, says to whom it happened and what now, and a
storm of one kind does not fill a disk."""

import json

from fleet import Fleet, anthropic_body, long_text, wait_until

TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
HOSTILE = 'a"b\\c {"level":"error"} \u202e=%s'
ABOUT = {"job", "family", "route", "upstream", "budget"}  # one of these has each warning ...
OF_ALL = ("holding was switched",)  # ... but of all


class Json(Fleet):
    def write_config(self, dialect="anthropic"):
        super().write_config(dialect)
        self.config.write_text("log_format: json\n" + self.config.read_text())

    def lines(self, name):
        """Of the log so far; the last one may still be under way."""
        text = self.log(name)
        return [json.loads(line) for line in text[:text.rfind("\n") + 1].splitlines()]

    def await_line(self, name, words, **fields):
        return wait_until(lambda: [one for one in self.lines(name) if words in one["event"] and
                                   fields.items() <= one.items()], f"{words!r} of {name}", 60)


def run_a_bad_day(fleet):
    body = anthropic_body("?", long_text(2000))
    fleet.http("/knobs", {"fault_next": "server_error", "fault_next_count": 1})
    fleet.enqueue([body], "a", route=HOSTILE, traceparent=TRACE, ref=HOSTILE)
    assert fleet.collect(1, 60, "a").popitem()[1]["traceparent"] == TRACE
    fleet.http("/knobs", {"fault_next": "rate_limit", "fault_next_count": 1})
    fleet.enqueue([body] * 3, "b", route=HOSTILE, traceparent=TRACE)
    fleet.collect(3, 60, "b")
    fleet.http("/knobs", {"fault_next": "bad_request", "fault_next_count": 1})
    fleet.enqueue([body], "c", route=HOSTILE, traceparent=TRACE)
    fleet.collect(1, 60, "c")
    fleet.enqueue(["{" + HOSTILE] * 60, "d", route=HOSTILE, traceparent=TRACE)
    fleet.collect(60, 60, "d")
    fleet.warmq("hold", "off")
    fleet.await_line("scheduler", "holding was switched off")
    fleet.warmq("hold", "on")
    fleet.warmq("family", "pause", HOSTILE)
    fleet.await_line("scheduler", "paused: nothing of this family starts", route=HOSTILE)


def test_each_line_is_an_object_and_says_to_whom(tmp_path):
    with Json(tmp_path, knobs={"latency_ms": 10, "job_ms": 20, "retry_after_ms": 1000}) as fleet:
        fleet.start_all()
        run_a_bad_day(fleet)
        said = {name: fleet.lines(name) for name in ("scheduler", "worker-1")}
        for name, lines in said.items():
            for line in lines:
                assert {"time", "level", "program", "event"} <= set(line), line
                assert line["level"] == "info" or ABOUT & set(line) or \
                    line["event"].startswith(OF_ALL), line
        # Who failed, is tried again: its job, route, upstream and trace, and what happens now.
        [failed] = [one for one in said["worker-1"] if "the job is tried again" in one["event"]]
        assert (failed["route"], failed["upstream"], failed["traceparent"]) == (HOSTILE, "main", TRACE)
        assert failed["job"] and (failed["attempt"], failed["of"]) == (1, 3)
        assert fleet.await_line("scheduler", "nothing starts for ", budget="main:sonnet-4")
        # Sixty of a kind within ten seconds are twenty lines; tests/unit/test_log.c has the rest.
        dead = [one for one in said["scheduler"] if one["event"].startswith("dead at admission")]
        assert 20 <= len(dead) <= 40 and {one["route"] for one in dead} == {HOSTILE}
        assert {one["traceparent"] for one in dead} == {TRACE}
