"""Attacks by a third one, where nobody had looked yet; each one broke something once."""

import contextlib
import os
import subprocess

from fleet import BUILD, ROOT, WARMQ, Fleet, anthropic_body, long_text, wait_until
from test_98_fresh_eyes import STREAM, WHOLE, Answerer


# ---- answers -----------------------------------------------------------------------------

def test_a_reset_behind_an_answer_leaves_the_answer(tmp_path):
    """Whoever closes with bytes unread resets.  The answers were thrown away, and half of
    the jobs were paid for again."""
    odd = Answerer("odd", STREAM + b"content-length: %d\r\n" % len(WHOLE), WHOLE, "reset")
    with Fleet(tmp_path, upstream_options=odd.yaml()) as fleet:
        fleet.start_all()
        fleet.burst([anthropic_body(f"{number}") for number in range(50)], upstream="odd")
    odd.close()
    assert odd.requests == 50


def test_a_page_in_place_of_an_answer_is_shown(tmp_path):
    """All that was said was "no JSON", of an answer that may have been paid for; and three
    jobs of three died of it, while somebody had to log in."""
    page = Answerer("page", b"content-type: text/html\r\n", b"<html>log in first</html>")
    moved = Answerer("moved", b"location: https://else.where/\r\n", b"")
    moved.bytes = moved.bytes.replace(b"200 OK", b"301 Moved")
    with Fleet(tmp_path, upstream_options=page.yaml() + moved.yaml()) as fleet:
        fleet.start_all()
        for each, words in ((page, "It begins: <html>log in first</html>"),
                            (moved, "set the upstream's url")):
            id, = fleet.enqueue([anthropic_body("hi")], upstream=each.name, attempts=1)
            wait_until(lambda id=id: fleet.redis("HEXISTS", f"warmq:past:{id}", "why"), words)
            shown = fleet.warmq("job", "show", id)
            assert words in shown and "dead" not in shown, shown
    page.close()
    moved.close()


# ---- rights ------------------------------------------------------------------------------

def users():
    """The users of docs/OPERATIONS.md, by name."""
    lines = (ROOT / "docs" / "OPERATIONS.md").read_text().splitlines()
    return {line.split()[0]: line.replace(">PASSWORD", ">p@ss/word").split()
            for line in lines if ">PASSWORD" in line}


def test_each_program_needs_the_rights_that_are_written_down_and_no_others(tmp_path):
    with Fleet(tmp_path, knobs={"job_ms": 20}) as fleet:
        address = {}
        for name, words in users().items():
            fleet.redis("ACL", "SETUSER", *words)
            address[name] = f"unix://{name}:p%40ss%2Fword@{fleet.socket}"

        def warmq(user, *words):
            done = subprocess.run([WARMQ, *map(str, words), "--redis", address[user]],
                                  capture_output=True, text=True, timeout=120)
            return done.returncode, done.stdout + done.stderr

        fleet.redis("ACL", "SETUSER", "default", "-fcall", "-xadd", "-function")
        fleet.start("scheduler", BUILD / "scheduler" / "warmq-scheduler", "--config",
                    fleet.config, "--redis", address["warmq-scheduler"])
        fleet.await_ruler()
        fleet.start_worker("worker-1", 50, "--redis", address["warmq-worker"])
        fleet.await_workers(1)
        system = long_text(3000)
        for number in range(40):
            code, said = warmq("warmq-producer", "enqueue", "--upstream", "main", "--reply",
                               "results", "--body", anthropic_body(f"{number}", system))
            assert code == 0, said
        results = fleet.collect(40)
        assert {each["state"] for each in results.values()} == {"done"}
        assert fleet.stats()["writes"] == 1
        for words in (["doctor"], ["job", "ls"], ["worker", "ls"], ["family", "ls"],
                      ["budget", "ls"], ["hold", "status"], ["prefix", "ls"]):
            code, said = warmq("warmq-reader", *words)
            assert "NOPERM" not in said and code in (0, 1), (words, said[-600:])
        producer = fleet.connect()
        assert producer("AUTH", "warmq-producer", "p@ss/word") == "OK"
        assert producer("GET", "warmq:pressure") is None
        producer.close()
        code, said = warmq("warmq-people", "enqueue", "--upstream", "main", "--body",
                           anthropic_body("again", system), "--wait")
        assert code == 0 and '"state"' in said, said
        code, id = warmq("warmq-producer", "enqueue", "--upstream", "main", "--body",
                         anthropic_body("stored", system))
        code, said = warmq("warmq-reader", "wait", id.strip())
        assert code == 0 and '"state"' in said, said
        code, said = warmq("warmq-reader", "hold", "off")
        assert code == 1 and "may not do that: name another one" in said, said
        for words in (["hold", "off"], ["hold", "on"]):
            code, said = warmq("warmq-people", *words)
            assert code == 0, said
        fleet.end("worker-1")
        fleet.end("scheduler")
        refused = [dict(zip(entry[::2], entry[1::2])) for entry in fleet.redis("ACL", "LOG")]
        told = {(each[b"username"], each[b"object"]) for each in refused}
        assert {who for who, _ in told} <= {b"warmq-reader"}, told
        assert "NOPERM" not in fleet.log("worker-1") + fleet.log("scheduler")
        assert "p@ss" not in fleet.log("worker-1") + fleet.log("scheduler")


# ---- programs ----------------------------------------------------------------------------

def test_an_answer_that_a_full_disk_cuts_off_does_not_look_whole(tmp_path):
    """Jobs were enqueued, their ids were lost, and the status was 0."""
    with Fleet(tmp_path) as fleet:
        words = [WARMQ, "enqueue", "--redis", f"unix://{fleet.socket}", "--upstream", "main",
                 "--body", anthropic_body("hi")]
        with open("/dev/full", "w", encoding="ascii") as full:
            done = subprocess.run(words, stdout=full, stderr=subprocess.PIPE, text=True)
        assert done.returncode == 1
        assert "No space left on device" in done.stderr
        assert fleet.redis("XLEN", "warmq:jobs") == 1
        reader, writer = os.pipe()
        os.close(reader)
        done = subprocess.run(words, stdout=writer, stderr=subprocess.PIPE, text=True)
        os.close(writer)
        assert (done.returncode, done.stderr) == (1, "")  # who reads it has had enough


def test_a_redis_without_room_for_clients_is_named_as_that(tmp_path):
    """It says so and hangs up; they said "Broken pipe. Is that a Redis?"."""
    with Fleet(tmp_path, redis_options=("--maxclients", "4")) as fleet:
        others = [fleet.connect() for _ in range(3)]
        wait_until(lambda: fleet.redis("INFO", "clients").count(b"connected_clients:4"), "clients",
                   10)
        done = subprocess.run([WARMQ, "hold", "status", "--redis", f"unix://{fleet.socket}"],
                              stderr=subprocess.PIPE, text=True)
        assert done.returncode == 3
        assert "max number of clients reached" in done.stderr
        fleet.start_scheduler()
        wait_until(lambda: "max number of clients reached" in fleet.log("scheduler"), "refusal",
                   10)
        for other in others:
            other.close()
        fleet.await_ruler()


def test_a_log_that_nobody_reads_stops_nobody(tmp_path):
    """A terminal after Ctrl-S, a collector that hangs: no beat left the worker any more."""
    with Fleet(tmp_path, knobs={"job_ms": 20}) as fleet:
        reader, writer = os.pipe()
        os.set_blocking(writer, False)
        with contextlib.suppress(BlockingIOError):
            while True:
                os.write(writer, b"x" * 4096)
        os.set_blocking(writer, True)
        for program in ("scheduler", "worker"):
            fleet.processes[program] = subprocess.Popen(
                [BUILD / program / f"warmq-{program}", "--config", fleet.config],
                stdin=subprocess.DEVNULL, stdout=writer, stderr=writer, cwd=tmp_path)
        fleet.await_ruler()
        fleet.await_workers(1)
        fleet.burst([anthropic_body(f"{number}", long_text(2000)) for number in range(20)],
                    seconds=20)
        os.close(writer)
        os.close(reader)
