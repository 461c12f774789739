"""What `warmq` says: help for every verb, and errors that name what, where and what to do."""

import contextlib
import functools
import json
import os
import pty
import re
import select
import signal
import socket
import subprocess
import threading

import pytest

from daemons import BUILD, body, inbox, server  # noqa: F401
from store import Worker, wait_until
from test_42_scheduler_pages import enqueue, scheduler  # noqa: F401

WARMQ = os.path.join(BUILD, "cli", "warmq")


def run(*words, server=None, input=None, **more):
    env = {**os.environ, **({"WARMQ_REDIS": server.url} if server else {})}
    done = subprocess.run([WARMQ, *words], capture_output=True, text=True, timeout=120, env=env,
                          input=input, **more)
    return done.returncode, done.stdout, done.stderr


def says(code, *words, **more):
    """The sentence on stderr; nothing else may have been said."""
    got, out, err = run(*words, **more)
    assert got == code, (words, got, out, err)
    assert out == "" and err.startswith("warmq") and err.count("\n") == 1, (out, err)
    return err


@functools.lru_cache(maxsize=None)
def page_of(verb):
    """The help page of a verb."""
    code, page, errors = run(*verb.split(), "--help")
    assert (code, errors) == (0, ""), verb
    return page


@functools.lru_cache(maxsize=None)
def verbs():
    listed = re.findall(r"^  ([a-z]+(?: [a-z]+)?)  ", run("help")[1], re.M)
    assert len(listed) > 25
    return listed


def test_help_of_each_verb_is_the_same_however_it_is_asked_for():
    for verb in verbs():
        assert page_of(verb).startswith(f"warmq {verb}") and "--help" in page_of(verb)
        assert run("help", *verb.split()) == (0, page_of(verb), ""), verb
    assert run("job", "show", "-h") == (0, page_of("job show"), "")


def test_help_of_a_group_lists_its_verbs():
    groups = {verb.split()[0] for verb in verbs() if " " in verb}
    assert {"job", "family", "prefix", "worker", "budget", "hold"} <= groups
    for group in groups:
        code, page, errors = run("help", group)
        assert code == 0 and errors == "", group
        for verb in verbs():
            assert (f"  warmq {verb} " in page) == verb.startswith(group + " ")
        assert run(group, "--help") == (0, page, "")
        code, out, errors = run(group)
        assert code == 2 and out == "" and f"warmq {group} " in errors


@pytest.mark.parametrize("words, sentence", [
    (["enqeue"], 'There is no verb "enqeue". Did you mean "enqueue"?'),
    (["job", "lss"], 'There is no verb "job lss". Did you mean "job ls"?'),
    (["help", "job", "x"], 'There is no verb "job x". See `warmq help job`.'),
    (["job", "canel", "1-0"], 'There is no verb "job canel". Did you mean "job cancel"?'),
    (["help", "nonsense"], 'There is no verb "nonsense". See `warmq help`.'),
    (["job", "show", "1-0", "2-0"],
     '"2-0" is a word too many: warmq job show ID. See `warmq help job show`.'),
    (["family", "ls", "a", "b"],
     '"b" is a word too many: warmq family ls [ID|ROUTE]. See `warmq help family ls`.'),
    (["job", "show", "abc"], '"abc" is no id of a job: `warmq enqueue` and XADD answer one, '
                             'such as 1764450000000-0.'),
    (["job", "retry", "abc"], '"abc" is no id of a job: `warmq enqueue` and XADD answer one, '
                              'such as 1764450000000-0.'),
    (["wait", "-x"], "There is no option -x: options begin with two dashes. A word that begins "
                     "with one goes behind --."),
    (["prefix", "put", "a b", "-"],
     '"a b" is no name: one has 1 to 64 of A-Z a-z 0-9 . _ -'),
    (["prefix", "put", "n" * 65, "-"],  # no job could name it: it was dead at admission
     f'"{"n" * 60}" is no name: one has 1 to 64 of A-Z a-z 0-9 . _ -'),
])
def test_a_wrong_command_line_is_answered_with_what_to_type(words, sentence):
    assert says(2, *words) == f"warmq: {sentence}\n"


def test_files_that_cannot_be_read_are_not_called_json(server, tmp_path):
    for words in (["prefix", "put", "x", str(tmp_path)], ["explain", str(tmp_path)],
                  ["enqueue", "--upstream", "main", "--file", str(tmp_path)],
                  ["enqueue", "--upstream", "main", "--body", f"@{tmp_path}"]):
        assert says(2, *words, server=server) == (
            f"warmq: Cannot read {tmp_path}: Is a directory.\n")
    assert "No such file or directory" in says(2, "explain", str(tmp_path / "nothing"))
    assert server.client.exists("warmq:jobs") == 0
    assert says(1, "prefix", "put", "x", "-", server=server, input="") == "warmq: - is empty.\n"
    assert says(1, "prefix", "put", "x", "-", server=server, input="[").startswith(
        "warmq: - is no prefix: the prefix is not JSON: ")


def test_a_wrong_type_names_the_key_and_who_says_more(server, scheduler):
    server.client.set("warmq:families", "x")
    text = says(1, "family", "ls", server=server)
    assert text.startswith("warmq: Redis answered to HSCAN warmq:families: WRONGTYPE ")
    assert text.endswith("`warmq doctor` says what to do.\n")
    text = says(1, "family", "pause", "0" * 32, server=server)
    assert "warmq:families" in text
    server.client.rename("warmq:jobs", "warmq:old") if server.client.exists("warmq:jobs") else 0
    server.client.set("warmq:jobs", "x")
    text = says(1, "enqueue", "--upstream", "main", "--body", "{}", server=server)
    assert "warmq:jobs: WRONGTYPE" in text and "`warmq doctor`" in text
    code, out, text = run("wait", "1-0", server=server)
    assert (code, out) == (1, "") and "jobs: WRONGTYPE" in text and "`warmq doctor`" in text
    assert text.endswith("1 of 1 jobs were not seen to end. Wait again with `warmq wait 1-0`.\n")
    server.client.delete("warmq:jobs", "warmq:families")
    server.client.set("warmq:dead", "x")
    text = says(1, "job", "cancel", "1-0", server=server)
    assert "warmq:dead is a string and should be a zset" in text


def test_cancel_says_what_became_of_a_job_that_is_not_there(server, scheduler, inbox):
    last = enqueue(inbox, ["triage"], 2)["triage"]
    assert run("job", "cancel", last[0], server=server) == (
        0, "Cancelled. A request already under way is aborted at its worker's next beat.\n", "")
    assert says(1, "job", "cancel", last[0], server=server) == (
        "warmq: It has ended already: cancelled.\n")
    assert "There never was a job 99999999999999-0: the last one that was enqueued here is " \
        f"{last[1]}." in says(4, "job", "cancel", "99999999999999-0", server=server)
    assert "Nothing is known of the job 1-0: it never was, or it ended" in says(
        4, "job", "cancel", "1-0", server=server)
    assert says(4, "job", "show", "1-0", server=server).startswith(
        "warmq: Nothing is known of the job 1-0")
    code, out, err = run("job", "cancel", "1-0", "--json", server=server)
    assert (code, json.loads(out)) == (4, {"id": "1-0", "cancelled": False, "state": ""}) and err
    code, out, err = run("job", "cancel", last[1], "--json", server=server)
    assert (code, json.loads(out), err) == (
        0, {"id": last[1], "cancelled": True, "state": "cancelled"}, "")


def test_an_entry_of_many_jobs_is_waited_for_whole(server, scheduler, inbox):
    """It "was never enqueued"."""
    pack = inbox.redis.xadd("warmq:jobs", {"json": json.dumps(
        [{"upstream": "main", "body": "{}", "ref": str(n)} for n in range(1, 41)])})
    wait_until(lambda: not inbox.redis.xlen("warmq:jobs"), "admission")
    assert says(4, "job", "show", pack, server=server) == (
        f"warmq: {pack} is no job, but an entry of 40: they are {pack}.1 to {pack}.40.\n")
    for n in range(1, 41):
        run("job", "cancel", f"{pack}.{n}", server=server)
    code, out, err = run("wait", pack, "--json", server=server)
    assert code == 1 and err == (
        f"{pack} is an entry of 40 jobs: waiting for all of them, {pack}.1 to {pack}.40.\n"
        "warmq: 40 of 40 jobs did not end well.\n")
    assert [json.loads(line)["ref"] for line in out.splitlines()] == [
        str(n) for n in range(1, 41)]


def test_an_entry_that_is_one_job_has_no_others(server, scheduler, inbox):
    """They were waited for as long as that job waited, and "still in the inbox"."""
    body = {"upstream": "claude", "body": "{}"}
    ids = [inbox.redis.xadd("warmq:jobs", fields)
           for fields in (body, {"json": json.dumps(body)}, {"m": b"\x81\xa8upstream\xa6claude",
                                                            "body": "{}"})]
    wait_until(lambda: inbox.redis.hget("warmq:meta", "cursor") == f"{ids[-1]} 0", "admission")
    for id in ids:
        for verb in ("show", "cancel"):
            assert says(4, "job", verb, f"{id}.1", server=server).startswith(
                f"warmq: Nothing is known of the job {id}.1: ")
        code, _, err = run("wait", "--timeout", "20s", f"{id}.1", server=server)
        assert code == 1 and "nothing is known of 1" in err
    assert inbox.redis.xlen("warmq:jobs") == len(ids)


def test_a_file_that_is_taken_in_part_says_which_part(server, tmp_path):
    """128 of 400 jobs were in the queue, and nobody said so: who tried again sent them twice."""
    lines = [json.dumps({"model": "m", "n": n, "x": "x" * 50000}) for n in range(400)]
    file = tmp_path / "jobs.jsonl"
    file.write_text("\n" + "\n".join(lines) + "\n")
    used = server.client.info("memory")["used_memory"]
    server.client.config_set("maxmemory", used + 8000000)
    code, out, err = run("enqueue", "--upstream", "main", "--file", str(file), server=server)
    server.client.config_set("maxmemory", 0)
    stored = server.client.xrange("warmq:jobs")
    assert (code, out.split()) == (1, [id for id, _ in stored]), err
    assert 0 < len(stored) < 400
    refused, last = re.search(r"Redis has refused lines (.*)\.\n(?s:.*)lines behind (\d+) ",
                              err).groups()
    missing = set(range(int(last) + 1, 402))
    for part in refused.split(", "):
        first, _, end = part.partition("-")
        missing |= set(range(int(first), int(end or first) + 1))
    there = {json.loads(fields["body"])["n"] + 2 for _, fields in stored}
    assert missing == set(range(2, 402)) - there
    assert f"{len(stored)} jobs are in the queue" in err


def test_cancel_of_a_dead_job_says_how_to_be_rid_of_it(server, scheduler, inbox):
    enqueue(inbox, ["triage"], 1)
    worker, jobs = Worker(inbox, pool="default", slots=1), []
    wait_until(lambda: jobs.extend(worker.claim(0).jobs) or jobs, "a start")
    assert worker.fail(jobs[0], "fatal", reason="http_400", text="no such model") == "dead"
    id = jobs[0].id
    assert f"`warmq job drop {id}` forgets it" in says(1, "job", "cancel", id, server=server)
    code, out, _ = run("job", "ls", "--state", "dead", server=server)
    assert code == 0 and out.splitlines()[0].split() == ["JOB", "DIED", "REASON", "WHY"]
    assert out.splitlines()[1].startswith(id) and "http_400" in out
    [row] = json.loads(run("job", "ls", "--state", "dead", "--json", server=server)[1])
    assert (row["id"], row["state"], row["reason"]) == (id, "dead", "http_400")


def test_families_of_a_wrong_name_are_not_an_empty_list(server, scheduler, inbox):
    for verb in ("ls", "show", "pause", "resume", "warm"):
        assert says(4, "family", verb, "nonsense", server=server) == (
            'warmq: There is no family or route "nonsense". `warmq family ls` lists them.\n')
    assert run("family", "ls", server=server)[0] == 0


@pytest.mark.parametrize("text, sentence", [
    ("", "is empty"), ("nonsense", "is not JSON"), ('{"model":', "is not JSON"),
    ("[1]", "not a JSON object"), ('"x"', "not a JSON object"),
    ('{"a":1}', "no messages"),
])
def test_explain_of_nonsense_says_what_is_wrong_with_it(tmp_path, text, sentence):
    path = tmp_path / "a.json"
    path.write_text(text)
    assert sentence in says(1, "explain", str(path))


def explain(tmp_path, *bodies, words=()):
    """What `explain` says of bodies, for people and as JSON."""
    paths = [tmp_path / f"{name}.json" for name in "ab"[:len(bodies)]]
    for path, it in zip(paths, bodies):
        path.write_text(it if isinstance(it, str) else json.dumps(it))
    words = ["explain", *map(str, paths), *words]
    code, page, err = run(*words)
    assert (code, err) == (0, ""), (page, err)
    code, answer, err = run(*words, "--json")
    assert (code, err) == (0, "")
    return page, json.loads(answer)


DESK = "You are the desk. " * 400
TOOLS = [{"name": "a", "input_schema": {}}, {"name": "b", "input_schema": {}}]


def asks(system, question="Why?", **more):
    return json.loads(body(system, question, **more))


def test_explain_prints_chain_boundary_and_the_reason_of_each_marker(tmp_path):
    page, answer = explain(tmp_path, asks(DESK, tools=TOOLS))
    [it] = answer["bodies"]
    assert [(node["tier"], node["marker"]) for node in it["nodes"]] == [
        ("tools", "not marked: the prefix is below the provider's minimum"),
        ("system", "marked by WarmQ")]
    assert it["split"] and not it["opaque"] and it["note"] == ""
    assert it["nodes"][1]["tokens"] == pytest.approx(len(DESK) / 4, rel=0.1)
    assert "can be warmed" in it["warm_up"]
    for node in it["nodes"]:
        assert node["id"][:12] in page and node["marker"] in page
    assert "The boundary is the end of system;" in page and "Warm-up: can be warmed" in page
    marked = [{"type": "text", "text": DESK, "cache_control": {"type": "ephemeral"}}]
    [it] = explain(tmp_path, asks(marked))[1]["bodies"]
    assert it["nodes"][-1]["marker"] == "marked by the job itself"


def test_explain_of_what_cannot_be_shared_promises_nothing(tmp_path):
    for it, word in ((asks("Short."), "Less than 1024 bytes"),
                     (asks(DESK, previous_response_id="x"), "opaque: ")):
        page, answer = explain(tmp_path, it)
        assert word in page and "Warm-up" not in page
        assert answer["bodies"][0]["warm_up"] is None and not answer["bodies"][0]["split"]


@pytest.mark.parametrize("first, second, tier, kind, fix", [
    (asks(DESK + "It is 12:03:44."), asks(DESK + "It is 12:05:44.", "How?"),
     "system", "clock", "Move the time"),
    (asks(DESK, tools=TOOLS), asks(DESK, tools=TOOLS[::-1]), "tools", "tool order", "sort them"),
    (asks(DESK), asks(DESK, service_tier="auto"), "tools", "setting", "send the same one"),
], ids=["clock", "tool order", "setting"])
def test_explain_of_two_names_the_first_byte_its_kind_and_the_fix(tmp_path, first, second, tier,
                                                                  kind, fix):
    page, answer = explain(tmp_path, first, second)
    found = answer["difference"]
    assert (found["tier"], found["kind"]) == (tier, kind) and fix in found["fix"]
    assert f"They differ in {tier}, at byte {found['offset']} of that part: {kind}." in page
    assert page.splitlines()[-1].strip() == found["fix"]
    if kind == "setting":
        return
    at, again = [line.index("^") for line in page.splitlines() if line.strip() == "^"]
    one, two = [next(line for line in page.splitlines() if line.startswith(word))
                for word in ("  first   ", "  second  ")]
    assert at == again and one[10:at] == two[10:at] and one[at] != two[at]


def test_explain_of_two_that_share_says_one_family(tmp_path):
    spelt = dict(reversed(asks(DESK, "How?", temperature=0.5).items()))
    page, answer = explain(tmp_path, asks(DESK), json.dumps(spelt, indent=2))
    assert "one family" in page.splitlines()[-1] and answer["difference"]["kind"] == "none"


def test_explain_takes_shared_as_a_job_does_and_says_what_it_ignores(tmp_path):
    page, answer = explain(tmp_path, asks(DESK), words=["--shared", "messages:7"])
    assert "more messages than the request has" in page
    assert "ignored" in answer["bodies"][0]["note"]
    page, answer = explain(tmp_path, DESK, words=["--dialect", "raw", "--shared", "bytes:2000"])
    [node] = answer["bodies"][0]["nodes"]
    assert (node["tier"], node["bytes"]) == ("bytes", 2000)
    assert node["marker"] == "not marked: raw bytes go out as they are"
    assert "The boundary is the end of the shared bytes;" in page
    for wrong in ("messages:0", "messages:-1", "marker:x", "tools:1", "everything"):
        assert wrong in says(2, "explain", str(tmp_path / "a.json"), "--shared", wrong)


NEEDS_REDIS = [
    "enqueue --upstream x --body {}", "wait 1-0", "job ls", "job show 1-0", "job cancel 1-0",
    "job retry 1-0", "job drop --all", "family ls", "family show x", "family pause x",
    "family resume x", "family warm x", "prefix ls", "prefix show x", "worker ls",
    "worker quiet x", "worker resume x", "worker stop x", "budget ls", "budget unpark x",
    "doctor", "doctor --repair books", "hold on", "hold off", "hold status"]


def test_without_redis_every_verb_says_where_it_looked_and_what_to_do():
    for words in NEEDS_REDIS:
        assert says(3, *words.split(), "--redis", "redis://127.0.0.1:1") == (
            "warmq: Redis at redis://127.0.0.1:1: Connection refused. Is it running? Say where it "
            "is with --redis or WARMQ_REDIS.\n"), words
    covered = {verb for verb in verbs() for words in NEEDS_REDIS
               if (words + " ").startswith(verb + " ")}
    assert set(verbs()) - covered == {"dev", "demo", "prefix put", "why", "top", "explain",
                                      "completion", "version"}


def test_a_redis_that_refuses_is_not_called_absent(server):
    server.client.config_set("requirepass", "secret")
    server.client.execute_command("AUTH", "secret")
    text = says(1, "worker", "ls", server=server)
    assert "NOAUTH" in text and "--redis redis://USER:PASSWORD@HOST:PORT" in text


def test_json_is_one_line_and_one_value(server, scheduler, inbox):
    enqueue(inbox, ["triage"], 2)
    port = str(scheduler.port)
    for words in ("job ls", "job ls --state later", "job ls --state dead", "family ls",
                  "family show triage", "prefix ls", "worker ls", "budget ls", "hold status",
                  "version", f"why --url http://127.0.0.1:{port}",
                  f"top --url http://127.0.0.1:{port}"):
        code, out, errors = run(*words.split(), "--json", server=server)
        assert (code, errors) == (0, "") and out.count("\n") == 1, (words, out, errors)
        json.loads(out)


def test_columns_stand_below_their_heading(server, scheduler, inbox):
    enqueue(inbox, ["triage", "a-route-with-a-rather-long-name-of-its-own-and-more"], 3)
    worker, jobs = Worker(inbox, pool="default", slots=4), []
    wait_until(lambda: jobs.extend(worker.claim(0).jobs) or jobs, "a start")
    for words, left in (("family ls", ["FAMILY", "ROUTE", "STATE", "BLOCKED ON"]),
                        ("job ls", ["JOB", "ROUTE", "FAMILY", "ROLE", "WORKER"]),
                        ("worker ls", ["WORKER", "SESSION", "POOL", "STATE", "LEASE ENDS IN"]),
                        ("budget ls", ["ACCOUNT AND CLASS", "PARKED FOR"])):
        lines = run(*words.split(), server=server)[1].splitlines()
        assert len(lines) > 1, words
        for name in left:
            at = lines[0].index(name)
            for line in lines[1:]:
                cell = line[at:]
                assert at == 0 or line[at - 2:at] == "  ", (name, line)
                assert not cell.startswith(" "), (name, line)


def on_terminal(*words, **env):
    """What is said on a terminal, by stdout and stderr."""
    main, other = pty.openpty()
    process = subprocess.Popen([WARMQ, *words], stdin=other, stdout=other, stderr=other,
                               env={**os.environ, "TERM": "xterm", "NO_COLOR": "", **env})
    os.close(other)
    said = b""
    while select.select([main], [], [], 30)[0]:
        try:
            said += os.read(main, 65536)
        except OSError:  # the other end is closed
            break
    os.close(main)
    process.wait(timeout=120)
    return said.decode()


def test_colours_are_for_terminals_and_may_be_switched_off(server):
    words = ["doctor", "--redis", server.url]
    assert "\033[1;31mbad" in on_terminal(*words)
    assert "\033" not in on_terminal(*words, NO_COLOR="1")
    assert "\033" not in on_terminal(*words, TERM="dumb")
    assert "\033" not in run(*words)[1]


def test_a_long_wait_shows_how_far_it_is_on_a_terminal_only(server, scheduler, inbox):
    [id] = enqueue(inbox, ["triage"], 1)["triage"]
    words = ["wait", id, "--timeout", "300ms", "--redis", server.url]
    assert "waiting" in on_terminal(*words) and "0/1" in on_terminal(*words)
    assert run(*words)[1] == "" and "waiting" not in run(*words)[2]
    assert "\033[K" not in on_terminal(*words, "--json")


def test_a_wait_whose_time_is_up_says_so_by_its_status(server):
    id = server.client.xadd("warmq:jobs", {"upstream": "main", "body": "{}"})
    for words in (["wait", id, "--timeout", "50ms"],
                  ["enqueue", "--upstream", "main", "--body", "{}", "--wait", "--wait-timeout",
                   "50ms"]):
        said = says(5, *words, server=server)
        last = server.client.xrevrange("warmq:jobs", count=1)[0][0]
        assert said == ("warmq: 1 of 1 jobs have not ended yet; they go on. Wait again with "
                        f"`warmq wait {last}`.\n")


def test_a_wait_that_loses_redis_prints_what_has_ended_and_names_the_rest(server):
    """Nothing was printed: of `enqueue --wait` nobody knew the ids, and sent all again."""
    server.client.set("warmq:result:1-0", '{"id":"1-0","state":"done"}')
    id = server.client.xadd("warmq:jobs", {"upstream": "main", "body": "{}"})
    process = subprocess.Popen([WARMQ, "wait", "1-0", id, "--json", "--redis", server.url],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    wait_until(lambda: server.client.info("commandstats").get("cmdstat_xrange", {})
               .get("calls", 0) > 2, "its looks")
    server.client.client_kill_filter(_type="normal", skipme=True)
    out, errors = process.communicate(timeout=120)
    assert (process.returncode, json.loads(out)) == (3, {"id": "1-0", "state": "done"})
    assert errors.endswith(f"1 of 2 jobs were not seen to end. Wait again with `warmq wait {id}`.\n")


def test_an_answer_that_a_full_disk_cut_off_is_not_whole(server):
    with open("/dev/full", "w", encoding="utf-8") as full:
        done = subprocess.run([WARMQ, "enqueue", "--upstream", "main", "--body", "{}"], stdout=full,
                              stderr=subprocess.PIPE, text=True, timeout=120,
                              env={**os.environ, "WARMQ_REDIS": server.url})
    assert done.returncode == 1 and "Cannot write the answer: No space left" in done.stderr
    assert server.client.xlen("warmq:jobs") == 1, "it was done all the same, as the sentence says"


@pytest.mark.parametrize("name", ["", "a b", "a:b", "{warmq}", "x" * 65, "\xfc"])
def test_a_namespace_that_nobody_serves_takes_no_jobs(server, name):
    """They waited for ever: no scheduler starts with such a name."""
    says(2, "enqueue", "--upstream", "claude", "--body", "{}", "--namespace", name, server=server)
    assert server.client.keys("*") == []


@contextlib.contextmanager
def who_answers(folder, *answers):
    """A server that reads a command before each answer, and hangs up behind the last one."""
    path = folder / "redis.sock"

    def serve(listening):
        with listening.accept()[0] as client:
            for answer in answers:
                client.recv(65536)
                client.sendall(answer)

    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(path))
        listening.listen()
        listening.settimeout(60)
        thread = threading.Thread(target=serve, args=(listening,))
        thread.start()
        yield f"unix://{path}"
        thread.join()


def test_a_job_of_which_nobody_knows_is_not_to_be_sent_again_blindly(tmp_path):
    """It may be in the queue, and the advice was to try again."""
    with who_answers(tmp_path, b"+PONG\r\n", b"") as url:
        code, out, err = run("enqueue", "--upstream", "claude", "--body", "{}", "--redis", url)
    assert (code, out) == (3, "")
    assert "The job may be in the queue or not" in err
    assert "Try again" not in err


@pytest.mark.parametrize("words", [("hold", "status"), ("worker", "ls"), ("doctor", "--json"),
                                   ("enqueue", "--upstream", "claude", "--body", "{}")])
def test_who_is_not_let_in_says_so_and_has_sent_nothing(tmp_path, words):
    """Now an answer, now "is that a Redis?", with another status each."""
    with who_answers(tmp_path, b"-ERR max number of clients reached\r\n") as url:
        code, out, err = run(*words, "--redis", url)
    assert (code, out) == (3, "")
    assert "max number of clients reached. Raise maxclients" in err
    assert "in the queue" not in err


def test_lines_of_any_system_are_one_job_each(server):
    code, out, err = run("enqueue", "--upstream", "main", "--file", "-", server=server,
                         input='{"a":1}\r\n\n{"a":2}\n{"a":3}')
    assert (code, err) == (0, "") and len(out.splitlines()) == 3
    assert [fields["body"] for _, fields in server.client.xrange("warmq:jobs")] == [
        '{"a":1}', '{"a":2}', '{"a":3}']


def test_enqueue_answers_ids_in_json_too(server):
    code, out, err = run("enqueue", "--upstream", "main", "--file", "-", "--json", server=server,
                         input="{}\n{}\n")
    assert (code, err) == (0, "")
    assert json.loads(out) == {"ids": [id for id, _ in server.client.xrange("warmq:jobs")]}


def test_a_job_with_a_reply_list_is_not_waited_for(server):
    assert "Use one of the two" in says(2, "enqueue", "--upstream", "main", "--body", "{}", "--wait",
                                        "--reply", "me", server=server)
    assert server.client.xlen("warmq:jobs") == 0


def test_a_wait_that_is_interrupted_says_that_the_job_goes_on(server):
    id = server.client.xadd("warmq:jobs", {"upstream": "main", "body": "{}"})
    process = subprocess.Popen([WARMQ, "wait", id, "--redis", server.url], stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True)
    wait_until(lambda: "cmdstat_xrange" in server.client.info("commandstats"), "its first look")
    process.send_signal(signal.SIGINT)
    out, errors = process.communicate(timeout=120)
    assert (process.returncode, out) == (130, "")
    assert errors == ("warmq: 1 of 1 jobs have not ended yet; they go on. Wait again with `warmq "
                      f"wait {id}`.\n")


def complete(*lines):
    """What bash offers for the last word of each line, a tuple of words."""
    script = f"source <({WARMQ} completion)\n"
    for words in lines:
        script += (f"COMP_WORDS=({' '.join(repr(word) for word in words)}); "
                   f"COMP_CWORD={len(words) - 1}; _warmq; echo \"${{COMPREPLY[*]}}\"\n")
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=120,
                          check=True)
    assert done.stderr == ""
    return [set(line.split()) for line in done.stdout.splitlines()]


def test_bash_completes_every_verb_and_every_option():
    first = {verb.split()[0] for verb in verbs()} | {"help"}
    assert complete(("warmq", ""), ("warmq", "h"), ("warmq", "help", ""),
                    ("warmq", "wait", "1-0", "--t"), ("warmq", "job", "")) == [
        first, {"help", "hold"}, first, {"--timeout"}, {"ls", "show", "cancel", "retry", "drop"}]
    lines = [("warmq", *verb.split(), "--") for verb in verbs()]
    for verb, offered in zip(verbs(), complete(*lines)):
        assert offered == set(re.findall(r"^  (--[a-z-]+)", page_of(verb), re.M)), verb


def test_family_show_says_who_marks_each_place_or_why_nobody_does(server, scheduler, inbox):
    user = [{"type": "text", "text": "A policy. " * 900, "cache_control": {"type": "ephemeral"}}]
    jobs = {"ours": [asks("A policy. " * 700)] * 2, "theirs": [asks(user)] * 2,
            "single": [asks("A policy. " * 800)], "short": [asks("A policy. " * 200)] * 2,
            "never": [asks("A policy. " * 600)] * 2}
    for route, bodies in jobs.items():
        for it in bodies:
            inbox.add(upstream="claude", route=route, body=json.dumps(it),
                      **({"markers": "never"} if route == "never" else {}))

    def markers(route):
        code, out, _ = run("family", "show", route, "--json", server=server)
        return code == 0 and json.loads(out)[0]["places"][-1]["marker"]

    for route, marker in (("ours", "by WarmQ"), ("theirs", "by its jobs"),
                          ("single", "none: one job only so far"),
                          ("short", "none: below the minimum"),
                          ("never", "none: not needed, no place for one, or off")):
        wait_until(lambda: markers(route) == marker, f"{route} to be {marker}, not {markers(route)}")
        assert marker in run("family", "show", route, server=server)[1]
    # Who has marked stays known, to the next scheduler too, though one job of it does not.
    scheduler.terminate()
    scheduler.start()
    last = inbox.add(upstream="claude", route="theirs", body=json.dumps(asks("A policy. " * 900)),
                     hold_max="5s")
    wait_until(lambda: inbox.meta("cursor") == f"{last} 0", "admission")
    assert markers("theirs") == "by its jobs"


@pytest.mark.parametrize("tail, share", [(400, 200), (100, 50), (0, 0)])
def test_family_show_warns_of_markers_behind_the_shared_part(server, scheduler, inbox, tail, share):
    enqueue(inbox, ["triage"], 2)
    hour = int(inbox.redis.time()[0]) // 3600
    row = f"10 10 10 9 600 250 150 64 0 0 0 0 0 first:1,100,0,0,0 tail:9,{tail // 2},0,0,0"
    for back in (0, 1):
        inbox.redis.hset(f"warmq:ledger:{hour - back}", "triage", row)
    code, page, err = run("family", "show", "triage", server=server)
    assert (code, err) == (0, "") and ("tail-writes: 20 %" in page) == (tail == 400), page
    [row] = json.loads(run("family", "show", "triage", "--json", server=server)[1])
    assert row["tail_writes_permille"] == share
