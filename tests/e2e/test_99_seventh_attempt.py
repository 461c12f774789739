"""What a seventh attempt to break WarmQ from its documents alone has broken, as tests with real
programs."""

import urllib.request
import json

from fleet import Fleet, anthropic_body

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
