"""Rules, alerts and dashboard speak of metrics that exist, and say what they should."""

import json
import re
import shutil
import subprocess

import pytest

from fleet import ROOT
from prometheus import DOCUMENT, RULES, documented

DASHBOARD = ROOT / "deploy" / "grafana" / "warmq.json"
BROWSER = ROOT / "tests" / "browser"  # has what npm installs


def promtool(*words):
    if not shutil.which("promtool"):
        pytest.skip("promtool is not installed; ./dev setup installs it")
    done = subprocess.run(["promtool", *words], capture_output=True, text=True, cwd=RULES)
    assert done.returncode == 0, done.stdout + done.stderr


def text_of(*paths):
    return "\n".join(path.read_text(encoding="utf-8") for path in paths)


def expressions():
    board = json.loads(DASHBOARD.read_text(encoding="utf-8"))
    found = [target["expr"] for panel in board["panels"]
             for target in panel.get("targets", [])]
    return found + [note["expr"] for note in board["annotations"]["list"]]


def test_promtool_reads_the_rules_and_their_worlds_behave():
    promtool("check", "rules", "warmq.rules.yaml", "warmq.alerts.yaml")
    promtool("test", "rules", "warmq.test.yaml")


def test_every_alert_fires_in_some_world():
    alerts = set(re.findall(r"- alert: (\w+)", text_of(RULES / "warmq.alerts.yaml")))
    told = set(re.findall(r'alertname[=:] ?"?(\w+)', text_of(RULES / "warmq.test.yaml")))
    assert alerts == told


def test_rules_and_dashboard_name_only_metrics_that_are_documented():
    rules = text_of(RULES / "warmq.rules.yaml", RULES / "warmq.alerts.yaml")
    known = set(documented())
    known |= {name + part for name, (kind, _) in documented().items() if kind == "histogram"
              for part in ("_bucket", "_sum", "_count")}
    recorded = set(re.findall(r"- record: (\S+)", rules))
    for text in [rules, *expressions()]:
        names = set(re.findall(r"(?<![\w:])warmq_\w+", re.sub(r"#.*", "", text)))
        assert names <= known, names - known
        colon = set(re.findall(r"(?<![\w:])warmq:[\w:]+", text))
        assert colon <= recorded, colon - recorded


def test_the_dashboard_has_one_place_for_each_panel_and_says_what_it_shows():
    board = json.loads(DASHBOARD.read_text(encoding="utf-8"))
    ids = [panel["id"] for panel in board["panels"]]
    assert len(ids) == len(set(ids))
    taken = set()
    for panel in board["panels"]:
        at = panel["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"])
                 for y in range(at["y"], at["y"] + at["h"])}
        assert at["x"] + at["w"] <= 24 and not cells & taken, panel["title"]
        taken |= cells
        assert panel["type"] == "row" or panel["targets"], panel["title"]
        for target in panel.get("targets", []):
            assert target["datasource"]["uid"] == "${datasource}"


def schema_says(board, directory):
    """What the compiler says of a dashboard against the types of @grafana/schema."""
    if not shutil.which("node") or not (BROWSER / "node_modules" / "typescript").is_dir():
        pytest.skip("node or @grafana/schema is not there; ./dev setup installs them")
    path = directory / "board.json"
    path.write_text(json.dumps(board), encoding="utf-8")
    done = subprocess.run(["node", BROWSER / "grafana.mjs", path], capture_output=True, text=True,
                          timeout=600, check=False)
    assert done.returncode == ("as Grafana's schema has it" not in done.stdout), done.stderr
    return done.stdout


def test_the_dashboard_is_as_grafanas_own_schema_has_it(tmp_path):
    board = json.loads(DASHBOARD.read_text(encoding="utf-8"))
    assert schema_says(board, tmp_path) == "as Grafana's schema has it\n"
    stat = next(panel for panel in board["panels"] if panel["type"] == "stat")
    stat["options"]["graphMode"] = "somehow"  # and the check bites
    board["panels"][2]["gridpos"] = board["panels"][2].pop("gridPos")
    said = schema_says(board, tmp_path)
    assert 'Type \'"somehow"\' is not assignable' in said and "'\"gridpos\"' does not exist" in said


def test_the_table_of_alerts_is_that_of_the_file():
    text = (RULES / "warmq.alerts.yaml").read_text(encoding="utf-8")
    told = dict(re.findall(r"- alert: (\w+).*?severity: (\w+)", text, re.S))
    table = {name: row[1] for row in re.findall(r"^\| (`Warmq.*?) \| (\w+) \|", DOCUMENT.read_text(
        encoding="utf-8"), re.M) for name in re.findall(r"`(\w+)`", row[0])}
    assert table == told and len(told) > 15


def test_each_panel_has_its_place_its_unit_and_a_sentence():
    panels = json.loads(DASHBOARD.read_text(encoding="utf-8"))["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    taken = {}
    for panel in panels:
        at = panel["gridPos"]
        assert at["x"] + at["w"] <= 24 and at["w"] > 0 and at["h"] > 0, panel["title"]
        for x in range(at["x"], at["x"] + at["w"]):
            for y in range(at["y"], at["y"] + at["h"]):
                assert (x, y) not in taken, f"{panel['title']} covers {taken[x, y]}"
                taken[x, y] = panel["title"]
    assert {y for _, y in taken} == set(range(max(y for _, y in taken) + 1)), "an empty band"
    for panel in panels:
        if panel["type"] == "row":
            continue
        assert len(panel.get("description", "")) > 15, f"{panel['title']} says nothing"
        assert panel["fieldConfig"]["defaults"]["unit"], panel["title"]
        assert all(target.get("legendFormat") for target in panel["targets"]
                   if len(panel["targets"]) > 1), panel["title"]
