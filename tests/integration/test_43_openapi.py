"""docs/openapi.json describes what is served: no less, and nothing else."""

import json
import os
import re

from daemons import inbox, server  # noqa: F401
from store import ROOT, Worker, wait_until
from test_42_scheduler_pages import Stream, act, enqueue, families, scheduler  # noqa: F401

TYPES = {"object": dict, "array": list, "string": str, "integer": int, "boolean": bool,
         "number": (int, float)}


def description():
    with open(os.path.join(ROOT, "docs", "openapi.json"), encoding="utf-8") as file:
        return json.load(file)


def check(doc, schema, value, where):
    """As much of JSON Schema as the description uses; what it does not name is wrong."""
    if "$ref" in schema:
        schema = doc["components"]["schemas"][schema["$ref"].rsplit("/", 1)[1]]
    if value is None and schema.get("nullable"):
        return
    assert isinstance(value, TYPES[schema["type"]]), (where, value, schema)
    if schema["type"] == "array":
        for one in value:
            check(doc, schema["items"], one, where + "[]")
    if schema["type"] != "object":
        return
    for name in schema.get("required", []):
        assert name in value, f"{where}: {name} is missing"
    for name, one in value.items():
        if "properties" in schema:
            assert name in schema["properties"], f"{where}: {name} is not described"
            check(doc, schema["properties"][name], one, f"{where}.{name}")
        elif "additionalProperties" in schema:
            check(doc, schema["additionalProperties"], one, f"{where}.{name}")


def read(scheduler, path, operation):
    if path == "/api/v1/events":
        stream = Stream(scheduler)
        answer = stream.next()
        stream.close()
        return answer, {"$ref": "#/components/schemas/Overview"}
    query = "&".join(f"{one['name']}={one['example']}" for one in operation.get("parameters", [])
                     if one["in"] == "query" and one.get("required"))
    status, text = scheduler.get(path + (f"?{query}" if query else ""))
    if path == "/api/v1/drift":  # tests/browser has a route with two versions
        assert status == 404
        schema = operation["responses"]["default"]["content"]["application/json"]["schema"]
    else:
        assert status == 200, text
        schema = operation["responses"]["200"]["content"]["application/json"]["schema"]
    return json.loads(text), schema


def test_what_is_read_is_as_described(scheduler, inbox):
    doc, worker = description(), Worker(inbox, pool="default", slots=4)
    wait_until(lambda: scheduler.json("/api/v1/overview")["pools"], "the worker")
    ids = enqueue(inbox, ["triage"], 8)["triage"]
    wait_until(lambda: worker.claim().jobs, "a start")
    values = {"family": families(scheduler)["families"][0]["id"], "job": ids[0]}
    for path, methods in doc["paths"].items():
        if "get" in methods:
            answer, schema = read(scheduler, path.format(**values), methods["get"])
            check(doc, schema, answer, path)


def test_what_is_done_is_as_described(scheduler, inbox):
    doc = description()
    ids = enqueue(inbox, ["triage"], 8)["triage"]
    values = {"family": families(scheduler)["families"][0]["id"], "job": ids[0],
              "worker": Worker(inbox, pool="default").nonce}
    for path, methods in doc["paths"].items():
        if "post" not in methods:
            continue
        operation = methods["post"]
        status, answer = act(scheduler, path.format(**values).removeprefix("/api/v1/"),
                             operation["requestBody"]["content"]["application/json"]["example"])
        good = operation["responses"]["200"]["content"]["application/json"]["schema"]
        bad = operation["responses"]["default"]["content"]["application/json"]["schema"]
        assert status in (200, 404, 409), (path, answer)
        check(doc, good if status == 200 else bad, answer, path)


def test_every_path_that_is_served_is_described():
    """The table of pages and the actions, as the sources have them."""
    described = set(description()["paths"])
    for name in ("admin.c", "admin_act.c"):
        with open(os.path.join(ROOT, "scheduler", name), encoding="utf-8") as file:
            for path in re.findall(r'"(/api/v1/[a-z/]*)"', file.read()):
                assert path in described or any(one.startswith(path) for one in described), path


def test_every_reference_leads_somewhere():
    doc = description()
    names = set(re.findall(r'"#/components/schemas/(\w+)"', json.dumps(doc)))
    assert names <= set(doc["components"]["schemas"])
    assert set(doc["components"]["schemas"]) - names <= {"Overview"} | names
