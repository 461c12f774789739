"""Attacks by somebody who had read the documents only; each one broke something once."""

import gzip
import json
import signal
import socket
import struct
import subprocess
import sys
import threading

import pytest
from fleet import BUILD, Fleet, anthropic_body, long_text, wait_until

PROMPT = long_text(2000)


# ---- Redis -------------------------------------------------------------------------------

def test_a_job_that_is_done_leaves_no_deadline_behind(tmp_path):
    with Fleet(tmp_path, knobs={"job_ms": 20}) as fleet:
        fleet.start_all()
        fleet.burst([anthropic_body(f"{number}", PROMPT) for number in range(30)],
                    deadline="+30d")
        waiting = fleet.enqueue([anthropic_body("later")], deadline="+30d",
                                not_before="+29d")
        fleet.end("scheduler")  # the next one audits at once, not within a minute
        fleet.start_scheduler()
        wait_until(lambda: fleet.redis("ZCARD", "warmq:deadline") == 1, "audit", 30)
        assert fleet.redis("ZRANGE", "warmq:deadline", 0, -1) == [waiting[0].encode()]


def test_the_doctor_speaks_while_redis_is_full(tmp_path):
    with Fleet(tmp_path, knobs={"job_ms": 20}) as fleet:
        fleet.start_all()
        fleet.burst([anthropic_body("before")])
        fleet.redis("CONFIG", "SET", "maxmemory", "1mb")
        said = json.loads(fleet.warmq("doctor", "--json", check=False))["findings"]
        fleet.redis("CONFIG", "SET", "maxmemory", "0")
        memory = [finding for finding in said if finding["check"] == "memory"]
        assert memory[0]["level"] == "bad"
        assert {"books", "leases", "workers"} <= {finding["check"] for finding in said}


def test_jobs_go_on_soon_after_a_key_of_a_wrong_type_was_mended(tmp_path):
    """They waited for the next audit, up to a minute, though the key was right again."""
    with Fleet(tmp_path, knobs={"job_ms": 20}) as fleet:
        fleet.start_all()
        fleet.burst([anthropic_body(f"before {number}", PROMPT) for number in range(5)])
        fleet.redis("SET", "warmq:pools", "by hand")
        wait_until(lambda: "warmq:pools is a string" in fleet.log("worker-1"), "error", 20)
        fleet.redis("DEL", "warmq:pools")
        fleet.burst([anthropic_body("after", PROMPT)], seconds=20)


@pytest.mark.parametrize("refusal, on, off", [
    ("OOM", ("maxmemory", "1"), ("maxmemory", "0")),
    ("NOREPLICAS", ("min-replicas-to-write", "1"), ("min-replicas-to-write", "0"))])
def test_a_scheduler_waits_until_redis_takes_its_functions(tmp_path, refusal, on, off):
    with Fleet(tmp_path) as fleet:
        fleet.redis("CONFIG", "SET", *on)
        fleet.start_scheduler()
        wait_until(lambda: refusal in fleet.log("scheduler"), "refusal", 20)
        fleet.redis("CONFIG", "SET", *off)
        fleet.await_ruler()


# ---- programs ----------------------------------------------------------------------------

def test_programs_without_standard_streams_end_in_order(tmp_path):
    """A descriptor 2 that is free becomes a pipe of the loop, and the log goes into it."""
    with Fleet(tmp_path, knobs={"job_ms": 20}) as fleet:
        for program in ("scheduler", "worker"):
            fleet.processes[program] = subprocess.Popen(
                ["sh", "-c", f"exec {BUILD}/{program}/warmq-{program} --config "
                 f"{fleet.config} --log-level debug <&- >&- 2>&-"], cwd=tmp_path)
        fleet.await_ruler()
        fleet.await_workers(1)
        fleet.burst([anthropic_body(f"{number}", PROMPT) for number in range(50)])
        for program in ("worker", "scheduler"):
            process = fleet.processes[program]
            fleet.end(program, signal.SIGTERM)
            assert process.returncode == 0, program


def leave_results_behind(fleet, count):
    """A worker that is killed with `count` paid results on its disk and none in Redis."""
    fleet.keep_waiting()
    ids = fleet.enqueue([anthropic_body(f"{number}", PROMPT) for number in range(count)])
    fleet.await_requests(count)
    fleet.processes["redis"].send_signal(signal.SIGSTOP)
    fleet.keep_waiting(False)
    spool = fleet.directory / "worker" / "worker.0"
    wait_until(lambda: len(list(spool.glob("*.result"))) == count, "results on disk", 20)
    fleet.kill("worker")
    return ids, spool


def start_worker_in_place(fleet, *options):
    fleet.start("worker", BUILD / "worker" / "warmq-worker", "--config", fleet.config,
                "--state-dir", fleet.directory / "worker", *options)


def test_the_results_of_another_queue_are_left_to_it(tmp_path):
    """Two fleets of one machine share a directory; what one offered to the wrong queue was
    refused there, and gone.  And what is offered to the right one comes before its job."""
    with Fleet(tmp_path, knobs={"job_ms": 500}) as fleet:
        fleet.start_scheduler()
        fleet.await_ruler()
        fleet.redis("FCALL", "warmq_hold", 1, "warmq:meta", 1, "off")
        start_worker_in_place(fleet)
        fleet.await_workers(1)
        ids, spool = leave_results_behind(fleet, 12)
        fleet.processes["redis"].send_signal(signal.SIGCONT)
        fleet.start("strange", BUILD / "worker" / "warmq-worker", "--config", fleet.config,
                    "--state-dir", tmp_path / "worker", "--namespace", "other")
        wait_until(lambda: "results of another queue" in fleet.log("strange"), "warning", 20)
        assert f"results=12 dir={spool} " in fleet.log("strange")
        assert (tmp_path / "worker" / "worker.1").is_dir()
        assert len(list(spool.glob("*.result"))) == 12
        start_worker_in_place(fleet)
        assert set(fleet.collect(12)) == set(ids)
        assert fleet.stats()["requests"] == 12  # none was paid for twice


def test_many_results_on_disk_are_all_delivered_before_anything_is_claimed(tmp_path):
    """They were offered 40 a second, and the other jobs were claimed and paid for again."""
    with Fleet(tmp_path) as fleet:
        fleet.start_scheduler()
        fleet.await_ruler()
        ids = fleet.enqueue([anthropic_body(f"{number}", PROMPT) for number in range(150)])
        wait_until(lambda: fleet.redis("HGET", "warmq:meta", "cursor") == f"{ids[-1]} 0".encode(),
                   "the jobs to be admitted", 20)
        spool = tmp_path / "worker" / "worker.0"
        spool.mkdir(parents=True)
        for id in ids:  # as a worker writes them whose Redis is away
            (spool / f"{id}.result").write_text(
                f'warmq-result 1 60000 results\n{{"id":"{id}","state":"done"}}')
        start_worker_in_place(fleet, "--slots", 20)
        assert set(fleet.collect(150)) == set(ids)
        assert fleet.stats()["requests"] == 0


# ---- the cache ---------------------------------------------------------------------------

def test_jobs_that_no_worker_can_send_do_not_end_the_hold_of_their_family(tmp_path):
    """Three leaders were "refused", by a provider that had never seen them."""
    with Fleet(tmp_path, knobs={"job_ms": 100}) as fleet:
        fleet.start_all()
        fleet.enqueue([anthropic_body(f"strange {number}", PROMPT) for number in range(6)], handler="summarise")
        strange = fleet.collect(6)
        assert {result["reason"] for result in strange.values()} == {"unsupported"}
        fleet.burst([anthropic_body(f"{number}", PROMPT) for number in range(30)])
        stats = fleet.stats()
        assert (stats["writes"], stats["duplicate_writes"]) == (1, 0)


def test_a_lifetime_that_is_configured_is_kept_to(tmp_path):
    """An upstream that is said to keep its entries for 2 s: behind that, one request writes
    again."""
    with Fleet(tmp_path, upstream_options="    ttl: 2s\n", knobs={"job_ms": 20}) as fleet:
        fleet.start_all()
        fleet.burst([anthropic_body(f"early {number}", PROMPT) for number in range(5)])
        lane, = (record for record in fleet.redis("HVALS", "warmq:lanes"))
        until_ms = int(lane[35:49])

        def is_over():
            seconds, micros = map(int, fleet.redis("TIME"))
            return seconds * 1000 + micros // 1000 > until_ms + 1000
        wait_until(is_over, "end of the entry's life", 10)
        fleet.http("/reset", {})  # it has forgotten them
        fleet.burst([anthropic_body(f"late {number}", PROMPT) for number in range(30)])
        stats = fleet.stats()
        assert (stats["writes"], stats["duplicate_writes"]) == (1, 0)


# ---- answers -----------------------------------------------------------------------------

def event(kind, **more):
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **more})}\n\n".encode()


USAGE = {"input_tokens": 9, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0,
         "output_tokens": 1}
MESSAGE = {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-sonnet-4-5",
           "content": [], "stop_reason": None, "stop_sequence": None, "usage": USAGE}
WHOLE = (event("message_start", message=MESSAGE) +
         event("content_block_start", index=0, content_block={"type": "text", "text": ""}) +
         event("content_block_delta", index=0, delta={"type": "text_delta", "text": "hello"}) +
         event("content_block_stop", index=0) +
         event("message_delta", delta={"stop_reason": "end_turn"}, usage={"output_tokens": 2}) +
         event("message_stop"))
STREAM = b"content-type: text/event-stream\r\n"
OVERLOADED = event("error", error={"type": "overloaded_error", "message": "too late"})


class Answerer:
    """An upstream that says these bytes to each request and then closes, resets or holds
    the connection."""

    def __init__(self, name, head, body, end="close", dialect="anthropic"):
        self.name, self.end, self.dialect = name, end, dialect
        self.bytes = b"HTTP/1.1 200 OK\r\n" + head + b"\r\n" + body
        self.requests, self.held = 0, []
        self.server = socket.socket()
        self.server.bind(("127.0.0.1", 0))
        self.server.listen(64)
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                client, _ = self.server.accept()
            except OSError:
                return
            threading.Thread(target=self.answer, args=(client,), daemon=True).start()

    @staticmethod
    def more_of(client):
        data = client.recv(65536)
        if not data:
            sys.exit()  # its thread: whoever asked went away
        return data

    def answer(self, client):
        head, _, body = b"", b"", b""
        while b"\r\n\r\n" not in head:
            head += self.more_of(client)
        head, _, body = head.partition(b"\r\n\r\n")
        length, = (int(line[15:]) for line in head.lower().split(b"\r\n")
                   if line.startswith(b"content-length:"))
        while len(body) < length:
            body += self.more_of(client)
        self.requests += 1
        if self.end == "reset":
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        client.sendall(self.bytes)
        if self.end == "hold":
            self.held.append(client)
            return
        client.close()

    def close(self):
        for each in [self.server, *self.held]:
            each.close()

    def yaml(self):
        return (f'  {self.name}:\n    url: "http://127.0.0.1:{self.server.getsockname()[1]}"\n'
                f"    dialect: {self.dialect}\n    auth: none\n    stream: auto\n")


def ask_once(tmp_path, answerers):
    """Each of them is asked for one job; returns the results by upstream.  All must be done
    by the first answer: it was paid for."""
    with Fleet(tmp_path, upstream_options="".join(each.yaml() for each in answerers)) as fleet:
        fleet.start_all()
        names = {fleet.enqueue([anthropic_body("hi")], upstream=each.name)[0]: each.name
                 for each in answerers}
        results = fleet.collect(len(answerers), seconds=20)
        for each in answerers:
            each.close()
        found = {names[id]: result for id, result in results.items()}
        for each in answerers:
            assert found[each.name]["state"] == "done", found[each.name]
            assert each.requests == 1, each.name
        return found


def test_an_answer_that_is_whole_is_not_paid_for_again(tmp_path):
    """However its connection ends, and whatever comes behind its end."""
    chunk = b"%x\r\n%s\r\n" % (len(WHOLE), WHOLE)
    chunked = STREAM + b"transfer-encoding: chunked\r\n"
    found = ask_once(tmp_path, [
        Answerer("held", STREAM, WHOLE, "hold"),
        Answerer("held-chunks", chunked, chunk, "hold"),
        Answerer("no-last-chunk", chunked, chunk),
        Answerer("bad-chunk", chunked, chunk + b"zz\r\n"),
        Answerer("shorter-than-said", STREAM + b"content-length: 99999\r\n", WHOLE),
        Answerer("error-behind", STREAM, WHOLE + OVERLOADED)])
    for name, result in found.items():
        assert result["body"]["content"][0]["text"] == "hello", name
        assert result["usage"]["uncached"] == 9, name


def chunk_of(choices, **more):
    return b"data: " + json.dumps({"id": "c1", "object": "chat.completion.chunk", "model": "m",
                                   "choices": choices, **more}).encode() + b"\n\n"


def test_a_chat_without_its_last_word_is_whole_once_its_usage_has_come(tmp_path):
    """Some servers leave out [DONE]; here the connection breaks off, too."""
    body = (chunk_of([{"index": 0, "delta": {"role": "assistant", "content": "hello"}}]) +
            chunk_of([{"index": 0, "delta": {}, "finish_reason": "stop"}]) +
            chunk_of([], usage={"prompt_tokens": 9, "completion_tokens": 2}))
    found = ask_once(tmp_path, [Answerer("no-done", STREAM + b"content-length: 99999\r\n", body,
                                         dialect="openai-chat")])
    assert found["no-done"]["body"]["choices"][0]["message"]["content"] == "hello"


def test_an_answer_is_read_for_what_it_is(tmp_path):
    """Gateways compress unasked, and get the type wrong."""
    plain = json.dumps({**MESSAGE, "content": [{"type": "text", "text": "hello"}]}).encode()
    squeezed = b"content-encoding: gzip\r\n"
    found = ask_once(tmp_path, [
        Answerer("stream-as-json", b"content-type: application/json\r\n", WHOLE),
        Answerer("stream-as-nothing", b"", WHOLE),
        Answerer("json-as-stream", STREAM, plain),
        Answerer("squeezed-stream", STREAM + squeezed, gzip.compress(WHOLE)),
        Answerer("squeezed-json", b"content-type: application/json\r\n" + squeezed,
                 gzip.compress(plain))])
    for name, result in found.items():
        assert result["body"]["content"][0]["text"] == "hello", name


def test_an_answer_is_found_among_what_http_allows(tmp_path):
    chunk = b"%x\r\n%s\r\n" % (len(WHOLE), WHOLE)
    chunked = STREAM + b"transfer-encoding: chunked\r\n"
    interim = Answerer("interim", STREAM, WHOLE)
    interim.bytes = (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: </x>\r\n"
                     b"content-type: text/html\r\n\r\n" + interim.bytes)
    found = ask_once(tmp_path, [
        interim,
        Answerer("both-lengths", chunked + b"content-length: 7\r\n", chunk + b"0\r\n\r\n"),
        Answerer("trailers", chunked + b"trailer: retry-after, content-type\r\n",
                 chunk + b"0\r\nretry-after: 60\r\ncontent-type: text/html\r\n\r\n"),
        Answerer("long-header", STREAM + b"x-long: " + b"y" * 60000 + b"\r\n", WHOLE),
        Answerer("many-headers", STREAM + b"".join(b"x-%d: y\r\n" % n for n in range(3000)),
                 WHOLE),
        Answerer("folded-header", STREAM + b"x-folded: a\r\n  b\r\n", WHOLE)])
    for name, result in found.items():
        assert result["body"]["content"][0]["text"] == "hello", name


def test_a_raw_stream_ends_where_it_ends(tmp_path):
    """[DONE] is a word of one dialect only."""
    events = b'event: response.completed\ndata: {"x":1}\n\n'
    found = ask_once(tmp_path, [Answerer("raw-events", STREAM, events, dialect="raw")])
    assert found["raw-events"]["body"].encode() == events
