"""What a seventh attempt to break WarmQ from its documents alone has broken, as tests with real
programs."""

import urllib.request
import json

from fleet import Fleet, anthropic_body, wait_until

PROMPT = "Parcels may be returned. " * 800


def stats(url):
    with urllib.request.urlopen(url + "/stats", timeout=60) as answer:
        return json.load(answer)


def start_anew(fleet, config):
    """All programs end, and others start with this configuration."""
    for name in ("worker-1", "scheduler"):
        fleet.end(name)
    fleet.redis("HDEL", "warmq:meta", "owner")
    fleet.config.write_text(config)
    fleet.start_all(1, 50)


def test_a_prefix_is_written_by_one_request_where_its_upstream_has_moved_to(tmp_path):
    with Fleet(tmp_path, places=("other",)) as fleet:
        fleet.start_all(1, 50)
        bodies = [anthropic_body(f"question {i}", PROMPT) for i in range(40)]
        fleet.burst(bodies)
        assert fleet.stats()["writes"] == 1
        before = fleet.config.read_text()
        start_anew(fleet, before.replace(f'main:\n    url: "{fleet.provider}"',
                                         f'main:\n    url: "{fleet.urls["other"]}"'))
        fleet.burst(bodies)
        there = stats(fleet.urls["other"])
        assert (there["requests"], there["writes"], there["duplicate_writes"]) == (40, 1, 0)
        # and nothing is written again where nothing has changed
        start_anew(fleet, fleet.config.read_text())
        assert "go elsewhere" in fleet.log("scheduler")
        assert fleet.log("scheduler").count("go elsewhere") == 1
        fleet.burst(bodies)
        assert stats(fleet.urls["other"])["writes"] == 1


def test_who_waits_on_a_list_that_stands_beside_its_json_hears_of_every_end(tmp_path):
    """Only what stood in the object itself was looked at: the end came by id, and without its
    `ref`, to nobody."""
    with Fleet(tmp_path) as fleet:
        fleet.start_scheduler()
        fleet.await_ruler()
        body = json.loads(anthropic_body("?"))
        ids = [fleet.redis("XADD", "warmq:jobs", "*", "upstream", "main", "reply", reply,
                           "ref", f"of {reply}", *more, "json",
                           json.dumps({"body": body, **own})).decode()
               for reply, more, own in (("plain", (), {}), ("null", (), {"reply": None}),
                                        ("other", (), {"reply": "own", "ref": "own"}),
                                        ("late", ("deadline", "+1s"), {}))]
        large = {"body": {**body, "metadata": {"user_id": "x" * 70000}}, "upstream": "main",
                 "reply": "large", "ref": "of large"}
        ids += [fleet.redis("XADD", "warmq:jobs", "*", "json", json.dumps(large)).decode()]
        wait_until(lambda: fleet.redis("HGET", "warmq:meta", "cursor") == f"{ids[-1]} 0".encode(),
                   "admission")
        for id in ids[:3] + ids[4:]:
            fleet.warmq("job", "cancel", id)
        for reply, id, state, ref in (("plain", ids[0], "cancelled", "of plain"),
                                      ("null", ids[1], "cancelled", "of null"),
                                      ("own", ids[2], "cancelled", "own"),
                                      ("late", ids[3], "expired", "of late"),
                                      ("large", ids[4], "cancelled", "of large")):
            result = fleet.collect(1, reply=reply)[id]
            assert (result["state"], result["ref"]) == (state, ref)
        assert fleet.redis("KEYS", "warmq:result:*") == []
