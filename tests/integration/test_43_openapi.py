"""docs/openapi.json describes what is served: no less, and nothing else."""

import http.client
import json
import os
import re

import pytest

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


def operations():
    return [(path, method, one) for path, methods in description()["paths"].items()
            for method, one in methods.items()]


def test_the_parameters_of_a_path_are_those_in_its_name():
    for path, method, one in operations():
        assert set(re.findall(r"{(\w+)}", path)) == {
            found["name"] for found in one.get("parameters", []) if found["in"] == "path"}, (method, path)


def test_what_a_query_may_say_is_as_described(scheduler, inbox):
    """Each word and bound that is described is taken; the next one is an error, and so is a
    query without what it needs."""
    enqueue(inbox, ["triage"], 4)
    family = families(scheduler)["families"][0]["id"]
    error = {"$ref": "#/components/schemas/Error"}

    def ask(path, words):
        query = "&".join(f"{name}={value}" for name, value in words.items())
        status, text = scheduler.get(f"{path.format(family=family, job='1-1')}?{query}".replace(" ", "+"))
        if status >= 400:
            check(description(), error, json.loads(text), path)
        return status

    for path, method, one in operations():
        asked = {each["name"]: each for each in one.get("parameters", []) if each["in"] == "query"}
        needed = {name: each["example"] for name, each in asked.items() if each.get("required")}
        for name, each in asked.items():
            schema = each["schema"]
            if name in needed:
                assert ask(path, {other: needed[other] for other in needed if other != name}) == 400
            if "enum" in schema:
                good, bad = schema["enum"], ["something-else"]
            elif schema["type"] == "integer":
                good = [schema["minimum"], schema["maximum"]]
                bad = [schema["minimum"] - 1, schema["maximum"] + 1, "x"]
            else:
                continue
            of_one = {"family": family} if name == "state" else {}  # waiting ones are
            for word in good:
                assert ask(path, {**needed, **of_one, name: word}) == 200, (path, name, word)
            for word in bad:
                assert ask(path, {**needed, name: word}) == 400, (path, name, word)


def test_what_an_action_may_say_is_as_described(scheduler, inbox):
    """No member that is not described, none of another type, none left out; and each refusal
    is an Error."""
    doc = description()
    ids = enqueue(inbox, ["triage"], 8)["triage"]
    values = {"family": families(scheduler)["families"][0]["id"], "job": ids[0], "worker": "0" * 16}
    for path, method, one in operations():
        if method != "post":
            continue
        schema = one["requestBody"]["content"]["application/json"]["schema"]
        assert schema["additionalProperties"] is False, path
        example = one["requestBody"]["content"]["application/json"]["example"]
        wrong = [{**example, "unheard_of": 1}, "[]", "{"]
        wrong += [{**example, name: {}} for name in schema.get("properties", {})]
        wrong += [{key: value for key, value in example.items() if key != name}
                  for name in schema.get("required", [])]
        for body in wrong:
            status, answer = act(scheduler, path.format(**values).removeprefix("/api/v1/"), body)
            assert status == 400, (path, body, answer)
            check(doc, {"$ref": "#/components/schemas/Error"}, answer, path)


@pytest.mark.parametrize("method, path, headers, status", [
    ("POST", "check", {}, 415), ("POST", "check", {"Content-Type": "application/json"}, 401),
    ("POST", "check", {"Content-Type": "application/json", "Origin": "http://evil.example"}, 403),
    ("PUT", "hold", {}, 405), ("DELETE", "jobs/1-1", {}, 405), ("GET", "explode", {}, 404),
    ("GET", "families/xyz", {}, 400), ("GET", "families/" + "0" * 32, {}, 404),
    ("GET", "jobs/1-1", {}, 404), ("GET", "overview", {"Host": "evil.example"}, 421)])
def test_all_that_is_refused_is_refused_as_an_error(scheduler, method, path, headers, status):
    connection = http.client.HTTPConnection("127.0.0.1", scheduler.port, timeout=30)
    connection.request(method, f"/api/v1/{path}", "{}" if method == "POST" else None, headers)
    answer = connection.getresponse()
    assert answer.status == status and answer.headers["Content-Type"] == "application/json"
    check(description(), {"$ref": "#/components/schemas/Error"}, json.loads(answer.read()), path)
    assert str(status) in description()["info"]["description"]
    connection.close()


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
