"""What a worker does with jobs that go well, and what it never does."""

import json
import os
import subprocess
import threading
import urllib.request

import pytest

from ports import free_port
from store import NEVER, node, wait_until
from worker_rig import (KEY, MARKED, MESSAGE, WorkerProcess, body, enqueue, events_of,
                        family, plain, program, provider, split_jobs, sse_held,
                        start, wait_result)


def test_a_job_becomes_a_result_by_its_id(store, provider, start):
    start()
    jobs = family()
    id, = enqueue(store, jobs, ref="mine", route="triage")
    store.open(jobs)
    result = wait_result(store, id)
    assert result["id"] == id and result["ref"] == "mine" and result["state"] == "done"
    assert result["upstream"] == "prov" and result["model"] == "m"
    assert result["http_status"] == 200 and result["request_id"] == "req_7"
    assert result["format"] == "json" and result["body"] == MESSAGE
    assert result["usage"] == {"read": 30, "written": 0, "uncached": 7, "output": 2}
    assert result["attempts"] == 0 and result["delivery"] == 1
    assert 0 < store.redis.ttl(store.key(f"result:{id}")) <= 24 * 3600


def test_a_result_is_pushed_to_the_list_that_the_job_names(store, start):
    start()
    jobs = family()
    ids = enqueue(store, jobs, 3, reply="box")
    store.open(jobs)
    wait_until(lambda: len(store.replies("box")) == 3, "three replies")
    assert sorted(json.loads(text)["id"] for text in store.replies("box")) == ids
    assert store.result(ids[0]) is None


def test_a_stream_is_asked_for_and_put_together_again(store, provider, start):
    start()
    jobs = family()
    id, = enqueue(store, jobs)
    store.open(jobs)
    assert wait_result(store, id)["body"] == MESSAGE
    assert provider.requests[0].json["stream"] is True
    assert provider.requests[0].path == "/v1/messages"


def test_a_job_that_asks_for_a_stream_gets_its_events(store, start):
    start()
    jobs = family()
    id, = enqueue(store, jobs, body=body(stream=True))
    store.open(jobs)
    result = wait_result(store, id)
    assert result["format"] == "sse"
    assert [line for line in result["body"].split("\n") if line.startswith("event: ")] == \
        [line for part in events_of(MESSAGE) for line in part.decode().split("\n")
         if line.startswith("event: ")]


def test_a_whole_answer_to_a_request_for_a_stream_is_as_good(store, provider, start):
    provider.default = plain(200, MESSAGE)
    start()
    jobs = family()
    id, = enqueue(store, jobs)
    store.open(jobs)
    assert wait_result(store, id)["body"] == MESSAGE


def test_headers_carry_key_version_betas_and_trace(store, provider, start):
    trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    start(upstream="    betas: [a-2026, b-2026]\n    headers:\n      x-team: red\n")
    jobs = family()
    id, = enqueue(store, jobs, betas="b-2026,a-2026", traceparent=trace)
    store.open(jobs)
    wait_result(store, id)
    headers = {k.lower(): v for k, v in provider.requests[0].headers.items()}
    assert headers["x-api-key"] == KEY and headers["anthropic-version"] == "2023-06-01"
    assert headers["anthropic-beta"] == "a-2026,b-2026" and headers["x-team"] == "red"
    assert headers["traceparent"] == trace
    assert headers["content-type"] == "application/json" and "expect" not in headers


def test_a_trace_that_is_none_is_sent_to_nobody(store, provider, start):
    start()
    jobs = family()
    id, = enqueue(store, jobs, traceparent="00-0af7\r\nx-evil: 1")
    store.open(jobs)
    assert "traceparent" not in wait_result(store, id)
    assert {"traceparent", "x-evil"}.isdisjoint(name.lower() for name in provider.requests[0].headers)


def test_usage_says_how_long_the_job_waited_since_it_was_due(store, provider, start):
    start()
    jobs = family()
    id, = enqueue(store, jobs)
    enqueued = int(id.split("-")[0])
    store.wait_past(enqueued + 300)
    opened = store.now()
    store.open(jobs)
    wait_result(store, id)
    words = store.events("done")[0].split(" ")
    waited = int(words[-1].split("w=")[1].split(",")[0])
    # Of Redis's clock a worker knows what its round trips allow.
    assert 300 <= opened - enqueued <= waited + 100 and waited <= store.now() - enqueued + 100
    assert abs(int(words[5]) - enqueued - waited) <= 100, "up to when its request left"


def test_a_beta_that_the_upstream_does_not_allow_is_the_end_of_the_job(store, start):
    start()
    jobs = family()
    id, = enqueue(store, jobs, betas="c-2026")
    store.open(jobs)
    result = wait_result(store, id)
    assert result["state"] == "dead" and result["reason"] == "unsupported"
    assert "c-2026" in result["text"] and store.dead() == [id]


def test_a_job_for_a_handler_is_not_sent_to_a_provider(store, provider, start):
    start()
    jobs = family()
    id, = enqueue(store, jobs, handler="summarise")
    store.open(jobs)
    result = wait_result(store, id)
    assert (result["state"], result["reason"]) == ("dead", "unsupported")
    assert "summarise" in result["text"] and provider.requests == []


def test_a_job_waits_for_a_worker_that_knows_its_upstream(store, start):
    start()
    jobs = family()
    id, = enqueue(store, jobs, upstream="elsewhere")
    store.open(jobs)
    wait_until(lambda: "elsewhere" in store.past(id).get("why", ""), "the end of the run")
    assert store.dead() == [] and store.past(id)["deferrals"] == "1"
    assert store.redis.zscore(store.key("later"), id) > store.now()


def test_an_openai_answer_has_usage_though_the_job_did_not_ask(store, provider, start):
    chunk = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "g",
             "choices": [{"index": 0, "delta": {"role": "assistant", "content": "Hi."},
                          "finish_reason": None}]}
    end = dict(chunk, choices=[{"index": 0, "delta": {}, "finish_reason": "stop"}])
    usage = dict(chunk, choices=[], usage={"prompt_tokens": 10, "completion_tokens": 2,
                                           "total_tokens": 12,
                                           "prompt_tokens_details": {"cached_tokens": 8}})

    def answer(handler):
        handler.send_response(200)
        handler.send_header("content-type", "text/event-stream")
        handler.send_header("connection", "close")
        handler.end_headers()
        for part in (chunk, end, usage):
            handler.wfile.write(f"data: {json.dumps(part)}\n\n".encode())
        handler.wfile.write(b"data: [DONE]\n\n")

    provider.default = answer
    start(dialect="openai-chat")
    jobs = family()
    id, = enqueue(store, jobs)
    store.open(jobs)
    result = wait_result(store, id)
    assert provider.requests[0].json["stream_options"] == {"include_usage": True}
    assert provider.requests[0].headers["authorization"] == f"Bearer {KEY}"
    assert result["body"]["choices"][0]["message"]["content"] == "Hi."
    assert result["usage"] == {"read": 8, "written": 0, "uncached": 2, "output": 2} or \
        result["usage"] == {"read": 8, "written": None, "uncached": 2, "output": 2}


def test_a_split_job_is_spliced_and_marked(store, provider, start):
    start()
    jobs, ids = split_jobs(store, 4)
    store.open(jobs)
    for id in ids:
        assert wait_result(store, id)["state"] == "done"
    bodies = {request.body for request in provider.requests}
    assert bodies == {(MARKED + ',"messages":[{"role":"user","content":"Why?"}],'
                       '"max_tokens":9,"stream":true}').encode()}


def test_without_a_mark_nothing_is_marked(store, provider, start):
    start()
    jobs, (id,) = split_jobs(store, 1, marks=0)
    store.open(jobs)
    wait_result(store, id)
    assert b"cache_control" not in provider.requests[0].body


def test_segments_are_fetched_once(store, provider, start):
    start(slots=1)
    jobs, ids = split_jobs(store, 5)
    before = store.redis.info("commandstats").get("cmdstat_get", {"calls": 0})["calls"]
    store.open(jobs)
    for id in ids:
        wait_until(lambda: store.redis.exists(store.key(f"result:{id}")), "a result")
    after = store.redis.info("commandstats")["cmdstat_get"]["calls"]
    assert after - before == len(ids) + 2


def test_a_ticket_sends_a_warm_up_that_answers_nothing(store, provider, start):
    provider.default = plain(200, dict(MESSAGE, content=[], usage={
        "input_tokens": 1, "cache_creation_input_tokens": 5000,
        "cache_read_input_tokens": 0, "output_tokens": 0}))
    start()
    jobs, ids = split_jobs(store, 1)
    store.grant(jobs.lane, gate=1, credits=0, window=1, px=f"{node(6)},{node(7)}",
                ticket=1, ticket_deadline=store.now() + 60000, marks=2)
    wait_until(lambda: store.events("ticket"), "the ticket's end")
    words = store.events("ticket")[0].split(" ")
    assert words[1] == jobs.lane and words[3] == "ok" and words[6:] == ["0", "5000", "1", "0"]
    sent = provider.requests[0].json
    assert sent["max_tokens"] == 0 and "stream" not in sent
    assert provider.requests[0].body.startswith(MARKED.encode())
    assert len(provider.requests) == 1


def test_a_first_event_is_reported_before_the_end_where_it_was_asked_for(store, provider,
                                                                         start):
    begun, go_on = threading.Event(), threading.Event()
    provider.default = sse_held(begun, go_on)
    start()
    jobs = family()
    id, = enqueue(store, jobs)
    store.grant(jobs.lane, gate=1, credits=1, role=1, window=1, until=NEVER)
    wait_until(lambda: store.events("began"), "the leader's first event")
    assert store.result(id) is None
    words = store.events("began")[0].split(" ")
    assert words[1] == jobs.lane and words[4] == "l"
    sent, first, read, written, uncached = (int(word) for word in words[5:10])
    assert abs(store.now() - first) < 5000 and first >= sent
    assert (read, written, uncached) == (30, 0, 7)
    go_on.set()
    assert wait_result(store, id)["state"] == "done"


@pytest.mark.parametrize("head, markers, told", [
    ("", "auto", ["30", "0", "7"]), ("markers never\n", "auto", ["-", "-", "7"]),
    ("", "never", ["-", "-", "7"])])
def test_a_leader_without_the_node_s_marker_proves_nothing(store, provider, start, head,
                                                           markers, told):
    start(markers=markers)
    jobs, (id,) = split_jobs(store, 1, head=head)
    store.grant(jobs.lane, gate=1, credits=1, role=1, window=1, until=NEVER)
    result = wait_result(store, id)
    assert result["usage"]["read"] == 30  # what the producer is told is what it was
    assert store.events("done")[0].split(" ")[7:10] == told
    assert (b"cache_control" in provider.requests[0].body) == (told[0] != "-")


def test_jobs_run_side_by_side(store, provider, start):
    held = [(threading.Event(), threading.Event()) for _ in range(20)]
    provider.answers = [sse_held(*pair) for pair in held]
    start(slots=20)
    jobs = family()
    ids = enqueue(store, jobs, 20)
    store.open(jobs)
    for begun, _ in held:
        assert begun.wait(120)
    for _, go_on in held:
        go_on.set()
    for id in ids:
        wait_result(store, id)


def test_the_key_stands_nowhere_but_in_the_request(store, provider, start):
    worker = start()
    jobs = family()
    id, = enqueue(store, jobs)
    store.open(jobs)
    wait_result(store, id)
    needle = KEY.encode()
    assert needle not in worker.log().encode()
    for name in ("environ", "cmdline"):
        with open(f"/proc/{worker.pid}/{name}", "rb") as file:
            assert needle not in file.read()
    for key in store.redis.keys("*"):
        assert needle not in store.redis.dump(key)
    with open(f"/proc/{worker.pid}/limits", encoding="utf-8") as file:
        core = [line for line in file if line.startswith("Max core file size")]
    assert core[0].split()[4] == "0"


def test_a_worker_without_its_key_does_not_start_and_says_which(store, provider):
    env = {k: v for k, v in os.environ.items() if k != "WARMQ_TEST_KEY"}
    worker = WorkerProcess(store, provider, env=env)
    try:
        assert worker.wait() == 3
        assert "prov" in worker.log() and "WARMQ_TEST_KEY" in worker.log()
    finally:
        worker.close()


LONG = "k" * 4096


@pytest.mark.parametrize("variable, content, says", [
    (LONG, None, "is longer than 4095 bytes. Check WARMQ_TEST_KEY."),
    (None, LONG + "\n", "is longer than 4095 bytes. Check "),
    (None, "\nkey\n", "(its first line is empty)"),
    (None, "", "(its first line is empty)"),
    (None, None, "(No such file or directory)"),
    ("a key", None, "contains blanks"),
], ids=["long variable", "long file", "empty line", "empty file", "no file", "blanks"])
def test_a_key_that_cannot_be_used_is_not_called_missing(store, provider, tmp_path, variable,
                                                         content, says):
    file = tmp_path / "key"
    if content is not None:
        file.write_text(content)
    env = {k: v for k, v in os.environ.items() if k != "WARMQ_TEST_KEY"}
    if variable:
        env["WARMQ_TEST_KEY"] = variable
    worker = WorkerProcess(store, provider, env=env,
                           **({} if variable else {"key": f"key_file: {file}"}))
    try:
        assert worker.wait() == 3
        assert "upstream prov" in worker.log().lower() and says in worker.log()
    finally:
        worker.close()


def test_health_and_metrics_are_pages(store, provider, start):
    port = free_port()
    start(worker=f"  listen: 127.0.0.1:{port}\n")
    jobs = family()
    id, = enqueue(store, jobs)
    store.open(jobs)
    wait_result(store, id)

    def metrics():
        return urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics").read().decode()

    wait_until(lambda: "\nwarmq_worker_settled_total 1\n" in metrics(), "the metric")
    health = urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz")
    assert health.read() == b"ok\n"
    assert "\nwarmq_worker_attached 1\n" in metrics()


def test_the_null_executor_answers_at_once(store, start):
    start(executor="null", slots=50)
    jobs = family()
    ids = enqueue(store, jobs, 200, reply="box")
    store.open(jobs)
    wait_until(lambda: len(store.replies("box")) == 200, "all replies")
    assert sorted(json.loads(text)["id"] for text in store.replies("box")) == sorted(ids)


def test_the_whole_worker_against_the_simulated_provider(store, start, simulated_provider):
    start(url=simulated_provider)
    jobs = family()
    ids = enqueue(store, jobs, 8, body=body("Count to ten."))
    store.open(jobs)
    for id in ids:
        result = wait_result(store, id)
        assert result["state"] == "done" and result["body"]["content"][0]["type"] == "text"
        assert result["usage"]["output"] > 0


@pytest.fixture
def simulated_provider(tmp_path):
    port_file = tmp_path / "port"
    process = subprocess.Popen(
        [program("warmq-provider"), "--port-file", str(port_file), "--latency-ms", "5",
         "--decode-tokens-per-second", "0"], stdout=subprocess.DEVNULL)
    wait_until(lambda: port_file.exists() and port_file.read_text().strip(), "a port")
    yield f"http://127.0.0.1:{port_file.read_text().strip()}"
    process.terminate()
    process.wait()
