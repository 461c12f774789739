"""What a worker makes of everything that is not an answer."""

import json
import os
import resource
import socket
import threading

import pytest

from ports import free_port
from store import wait_until
from worker_rig import (MESSAGE, Provider, begin_stream, body, enqueue, error, events_of, family,
                        later, plain, provider, silence, split_jobs, sse, sse_cut, start,
                        wait_result)


def one_job(store, **fields):
    jobs = family()
    id, = enqueue(store, jobs, **fields)
    store.open(jobs)
    return jobs, id


def promote(store):
    """Moves jobs that wait out a back-off, as soon as they are due."""
    wait_until(lambda: store.promote()[0] > 0, "a job to be due", 15)


def test_429_parks_the_account_as_long_as_the_provider_says(store, provider, start):
    provider.answers = [error(429, "rate_limit_error", retry_after="1")]
    start()
    before = store.now()
    jobs, id = one_job(store)
    wait_until(lambda: store.events("pressure"), "the pressure")
    words = store.events("pressure")[0].split(" ")
    assert words[1:3] == ["prov:default", "429"]
    assert before + 1000 <= int(words[3]) <= store.now() + 1000
    result = wait_result(store, id)
    assert store.now() >= before + 1000 and len(provider.requests) == 2
    assert result["state"] == "done" and result["attempts"] == 0
    assert result["delivery"] == 2


def test_overload_parks_the_account_too_and_is_no_attempt(store, provider, start):
    provider.answers = [error(529, "overloaded_error", retry_after="0.3")]
    start()
    jobs, id = one_job(store, attempts="1")
    assert wait_result(store, id)["attempts"] == 0
    assert store.events("pressure")[0].split(" ")[2] == "529"


def test_a_spend_cap_parks_the_account_for_long(store, provider, start):
    provider.answers = [plain(429, {
        "type": "error", "error": {"type": "rate_limit_error", "message": "Spend limit.",
                                   "details": {"error_code":
                                               "enforced_spend_limit_reached"}}})]
    worker = start()
    one_job(store)
    wait_until(lambda: store.events("pressure"), "the pressure")
    words = store.events("pressure")[0].split(" ")
    assert words[2] == "spend" and int(words[3]) > store.now() + 600000
    assert "spend limit" in worker.log()


def test_a_refused_key_parks_the_account_and_asks_for_people(store, provider, start):
    provider.answers = [error(401, "authentication_error", "invalid x-api-key")]
    worker = start()
    one_job(store)
    wait_until(lambda: store.events("pressure"), "the pressure")
    assert store.events("pressure")[0].split(" ")[2] == "key"
    assert "refuses the key" in worker.log()


def test_500_is_tried_again_after_a_back_off(store, provider, start):
    provider.answers = [error(500, "api_error"), error(500, "api_error")]
    start()
    before = store.now()
    jobs, id = one_job(store)
    for attempt in (1, 2):
        wait_until(lambda: store.past(id).get("attempts") == str(attempt), "an attempt")
        due = store.redis.zscore(store.key("later"), id)
        assert before + 375 * attempt <= due <= store.now() + 500 * attempt
        promote(store)
        before = store.now()
    result = wait_result(store, id)
    assert result["state"] == "done" and result["attempts"] == 2


def test_a_job_that_fails_too_often_is_dead_with_the_last_error(store, provider, start):
    provider.default = error(503, "api_error", "All is lost.")
    start()
    jobs, id = one_job(store, attempts="1")
    result = wait_result(store, id)
    assert result["state"] == "dead" and result["http_status"] == 503
    assert "All is lost." in result["text"]
    assert result["body"]["error"]["message"] == "All is lost."
    assert store.dead() == [id]


def test_400_is_the_end_at_once_and_its_body_is_kept(store, provider, start):
    provider.default = error(400, "invalid_request_error", "max_tokens: required")
    start()
    jobs, id = one_job(store, reply="box")
    wait_until(lambda: store.replies("box"), "the reply")
    result = json.loads(store.replies("box")[0])
    assert result["state"] == "dead" and result["reason"] == "invalid_request_error"
    assert result["http_status"] == 400 and "max_tokens" in result["text"]
    assert result["body"]["error"]["type"] == "invalid_request_error"
    assert len(provider.requests) == 1


def test_a_stream_that_is_cut_off_is_a_failed_attempt(store, provider, start):
    provider.answers = [sse_cut(4)]
    start()
    jobs, id = one_job(store)
    promote(store)
    result = wait_result(store, id)
    assert result["body"] == MESSAGE and result["attempts"] == 1
    [line] = store.events("spent")
    assert line.split(" ")[5] == "failed", "what it had read and written is paid for"


def cut_in_headers(handler):
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event")
    handler.close_connection = True


def test_an_answer_that_is_cut_off_in_its_headers_is_a_failed_attempt(store, provider, start):
    """It was taken for an empty page of something else: no attempt, again and again."""
    provider.answers = [cut_in_headers]
    start()
    jobs, id = one_job(store)
    wait_until(lambda: store.past(id), "the job to come back")
    assert store.past(id)["why"] == ("The connection broke off: it was closed before the headers "
                                     "of the answer were whole.")
    promote(store)
    assert wait_result(store, id)["attempts"] == 1


@pytest.mark.parametrize("answer, says", [
    (sse_cut(0), "failed"), (error(500, "api_error"), None)], ids=["cut", "refused"])
def test_what_may_be_billed_is_said_though_no_usage_came(store, provider, start, answer, says):
    provider.answers = [answer]
    start()
    jobs, id = one_job(store)
    promote(store)
    wait_result(store, id)
    spent = [line.split(" ") for line in store.events("spent")]
    assert [words[5] for words in spent] == ([says] if says else [])
    for words in spent:
        assert words[8:12] == ["-"] * 4 and "b=1" in words[12].split(",")


def test_an_error_inside_a_stream_counts_like_an_error_before_it(store, provider, start):
    def answer(handler):
        sse_cut(3)(handler)
        handler.wfile.write(b'event: error\ndata: {"type":"error","error":{"type":'
                            b'"overloaded_error","message":"Busy."}}\n\n')

    provider.answers = [answer]
    start()
    jobs, id = one_job(store, attempts="1")
    wait_until(lambda: store.events("pressure"), "the pressure")
    assert store.events("pressure")[0].split(" ")[2] == "529"


def test_a_connection_that_breaks_without_a_byte_is_a_failed_attempt(store, provider, start):
    def answer(handler):
        handler.close_connection = True

    provider.answers = [answer]
    start()
    jobs, id = one_job(store)
    promote(store)
    assert wait_result(store, id)["attempts"] == 1


def test_a_used_connection_that_breaks_without_a_byte_is_not_used_behind_our_back(
        store, provider, start):
    """curl sends such a request once more by itself, and nobody would know of the first."""
    def answer(handler):
        handler.close_connection = True

    provider.answers = [plain(200, MESSAGE)]
    start()
    _, first = one_job(store)
    wait_result(store, first)
    provider.answers = [answer]
    _, second = one_job(store)
    promote(store)
    assert wait_result(store, second)["attempts"] == 1
    assert len(provider.requests) == 3


def test_a_job_that_failed_goes_over_a_connection_that_nobody_has_used(store, provider, start):
    """A server that closes idle connections closed all that were kept, one after another,
    just as the same job came over them: it was dead."""
    together = threading.Barrier(3)  # curl, which tries again and is stopped, ends two

    def once(handler):
        if getattr(handler, "has_served", False):
            handler.close_connection = True
            return
        handler.has_served = True
        plain(200, MESSAGE)(handler)

    def both(handler):
        together.wait(120)
        once(handler)

    provider.answers, provider.default = [both] * 3, once
    start(slots=3)
    jobs = family()
    ids = enqueue(store, jobs, 3)
    store.open(jobs)
    for id in ids:
        wait_result(store, id)
    _, id = one_job(store, attempts="2")
    promote(store)
    result = wait_result(store, id)
    assert (result["state"], result["attempts"]) == ("done", 1), result
    assert len(provider.requests) == 5


def test_what_was_never_sent_costs_nothing(store, provider, start):
    port = free_port()
    start(url=f"http://127.0.0.1:{port}")
    jobs, id = one_job(store, attempts="1")
    wait_until(lambda: store.past(id), "the job to come back", 10)
    assert "attempts" not in store.past(id) and store.past(id)["deferrals"] == "1"
    late = Provider(port)
    try:
        promote(store)
        assert wait_result(store, id)["attempts"] == 0
    finally:
        late.close()


def test_a_worker_with_too_few_files_says_so_and_uses_fewer_slots(store, provider, start):
    worker = start(slots=100, files=(84, 84))
    jobs = family()
    ids = enqueue(store, jobs, 30)
    store.open(jobs)
    for id in ids:
        assert wait_result(store, id)["state"] == "done"
    assert "limit of open files is too low" in worker.log()
    assert "limit=84 needed=260 slots=100 used=12" in worker.log()
    assert "nothing was sent" not in worker.log()


def test_a_worker_raises_its_limit_of_files_to_what_it_may(store, provider, start):
    worker = start(slots=100, files=(64, 4096))
    jobs, id = one_job(store)
    wait_result(store, id)
    assert "limit of open files" not in worker.log()
    assert resource.prlimit(worker.pid, resource.RLIMIT_NOFILE) == (4096, 4096)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"], ids=["connect", "name"])
def test_files_that_run_out_are_named_and_nobody_else_is_blamed(store, provider, start, host):
    worker = start(url=f"http://{host}:{provider.port}")
    worker.wait_log("attached")
    used = len(os.listdir(f"/proc/{worker.pid}/fd"))
    before = resource.prlimit(worker.pid, resource.RLIMIT_NOFILE)
    resource.prlimit(worker.pid, resource.RLIMIT_NOFILE, (used, before[1]))
    jobs, id = one_job(store)
    wait_until(lambda: store.past(id).get("deferrals") == "1", "the job to come back")
    assert "raise LimitNOFILE" in store.past(id)["why"]
    assert "reason=files" in worker.log()
    assert store.events("pressure") == [], "it is not the provider that is away"
    resource.prlimit(worker.pid, resource.RLIMIT_NOFILE, before)
    promote(store)
    assert wait_result(store, id)["state"] == "done"


def test_a_job_that_takes_longer_than_its_time_out_is_a_failed_attempt(store, provider,
                                                                       start):
    begun, go_on = threading.Event(), threading.Event()
    provider.answers = [silence(begun, go_on)]
    start()
    jobs, id = one_job(store, timeout="1s")
    assert begun.wait(120)
    wait_until(lambda: store.past(id).get("attempts") == "1", "the time-out")
    go_on.set()
    assert "time-out" in store.past(id)["why"]
    promote(store)
    wait_result(store, id)


def hints(answer):
    """The same behind an interim answer, which is none."""
    def hinting(handler):
        handler.wfile.write(b"HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n")
        handler.wfile.flush()
        answer(handler)
    return hinting


@pytest.mark.parametrize("wrap", [lambda answer: answer, hints], ids=["silent", "hints"])
def test_a_stream_of_which_no_byte_comes_is_given_up_before_its_time_out(store, provider,
                                                                         start, wrap):
    begun, go_on = threading.Event(), threading.Event()
    provider.answers = [wrap(silence(begun, go_on))]
    start(upstream="    first_byte: 1s\n")
    jobs, id = one_job(store, timeout="10m")
    assert begun.wait(120)
    wait_until(lambda: store.past(id).get("attempts") == "1", "the end of the first run", 20)
    go_on.set()
    assert "first_byte" in store.past(id)["why"]
    assert store.events("pressure")[0].split(" ")[2] == "timeout", "the scheduler hears of it"
    promote(store)
    wait_result(store, id)


def test_a_stream_that_has_begun_may_be_silent_for_longer(store, provider, start):
    def answer(handler):
        begin_stream(handler)
        handler.wfile.flush()
        later(4, lambda handler: handler.wfile.write(b"".join(events_of(MESSAGE))))(handler)

    provider.answers = [answer]
    start(upstream="    first_byte: 3s\n")
    jobs, id = one_job(store)
    result = wait_result(store, id)
    assert result["state"] == "done" and result["attempts"] == 0


def test_an_answer_that_comes_as_a_whole_may_take_longer_than_a_first_byte(store, provider,
                                                                           start):
    provider.answers = [later(2, plain(200, MESSAGE))]
    start(upstream="    first_byte: 1s\n    stream: never\n")
    jobs, id = one_job(store)
    result = wait_result(store, id)
    assert result["state"] == "done" and result["attempts"] == 0


def test_a_model_that_refuses_our_marker_gets_none_from_then_on(store, provider, start):
    provider.answers = [error(400, "invalid_request_error",
                              "system.0: cache_control: Extra inputs are not permitted")]
    start(slots=1)
    jobs, ids = split_jobs(store, 3)
    store.open(jobs)
    for id in ids:
        result = wait_result(store, id)
        assert result["state"] == "done" and result["attempts"] == 0
    marked = [b"cache_control" in request.body for request in provider.requests]
    assert marked == [True, False, False, False]


def test_a_model_that_refuses_one_addition_after_the_other_gets_the_job_without_any(
        store, provider, start):
    provider.answers = [error(400, "invalid_request_error", "cache_control: no"),
                        error(400, "invalid_request_error", "stream: no"),
                        plain(200, MESSAGE)]
    start(slots=1)
    jobs, ids = split_jobs(store, 2)
    store.open(jobs)
    for id in ids:
        result = wait_result(store, id)
        assert result["state"] == "done" and result["attempts"] == 0
    assert [(b"cache_control" in request.body, b'"stream":true' in request.body)
            for request in provider.requests] == [
        (True, True), (False, True), (False, False), (False, False)]


def test_a_400_that_never_ends_is_the_job_s_own(store, provider, start):
    """It names again what was left out already."""
    provider.default = error(400, "invalid_request_error", "cache_control: no")
    start(slots=1)
    jobs, [id] = split_jobs(store, 1)
    store.open(jobs)
    assert wait_result(store, id)["state"] == "dead" and len(provider.requests) == 2


@pytest.mark.parametrize("answer, rest_ms", [
    (error(429, "rate_limit_error", retry_after="7200"), 3600000),
    (error(529, "overloaded_error"), 5000), (error(429, "rate_limit_error"), 1000)])
def test_an_account_rests_an_hour_at_most_and_longer_when_all_is_overloaded(
        store, provider, start, answer, rest_ms):
    provider.answers = [answer]
    start()
    before = store.now()
    one_job(store)
    wait_until(lambda: store.events("pressure"), "the pressure")
    until = int(store.events("pressure")[0].split(" ")[3])
    assert before + rest_ms <= until <= store.now() + rest_ms


def test_a_5xx_that_says_when_is_tried_again_then(store, provider, start):
    provider.answers = [error(503, "api_error", retry_after="40")]
    start()
    before = store.now()
    _, id = one_job(store)
    wait_until(lambda: store.redis.zscore(store.key("later"), id), "the job to wait")
    assert before + 40000 <= store.redis.zscore(store.key("later"), id) <= store.now() + 40000


def test_a_400_for_the_job_s_own_marker_is_the_job_s_own(store, provider, start):
    provider.default = error(400, "invalid_request_error", "cache_control: no")
    start()
    jobs, id = one_job(store, body=body(cache_control={"type": "ephemeral"}))
    assert wait_result(store, id)["state"] == "dead" and len(provider.requests) == 1


@pytest.mark.parametrize("answer", [
    plain(200, b"".join(events_of(MESSAGE))), plain(200, MESSAGE, content_type="text/event-stream"),
    plain(200, b": a comment first\n\n" + b"".join(events_of(MESSAGE)))],
    ids=["events called JSON", "JSON called events", "comment"])
def test_an_answer_is_what_it_looks_like_whatever_a_gateway_calls_it(store, provider, start, answer):
    provider.answers = [answer]
    start()
    jobs, id = one_job(store)
    result = wait_result(store, id)
    assert (result["state"], result["format"], result["attempts"]) == ("done", "json", 0)
    assert result["body"] == MESSAGE


def test_an_empty_answer_is_none(store, provider, start):
    provider.answers = [plain(200, b""), sse_cut(0)]
    start()
    jobs, id = one_job(store, attempts="2")
    promote(store)
    result = wait_result(store, id)
    assert result["state"] == "dead" and len(provider.requests) == 2


def typed(status, kind, data):
    """An answer of this type; without one, None."""
    def answer(handler):
        handler.send_response(status)
        if kind:
            handler.send_header("content-type", kind)
        if status != 204:
            handler.send_header("content-length", str(len(data)))
        handler.end_headers()
        handler.wfile.write(data)
    return answer


LOGIN = b"<!DOCTYPE html><title>Log in first</title>"


FOREIGN = [
    (typed(200, "text/html; charset=utf-8", LOGIN), "200, but no JSON", "Log in first"),
    (typed(201, "application/json", LOGIN), "201, but no JSON", "Log in first"),
    (typed(202, "text/plain", b"default backend"), "202, but no JSON", "default backend"),
    (typed(204, None, b""), "204, but no JSON", "It is empty"),
    (typed(302, "text/html", LOGIN), "302", "It redirects"),
    (typed(403, "text/html", LOGIN), "403", "Log in first"),
    (typed(404, "text/plain", b"404 page not found"), "404", "page not found"),
    (typed(407, "text/html", LOGIN), "407", "Log in first"),
    (typed(511, "text/html", LOGIN), "511", "Log in first")]


@pytest.mark.parametrize("dialect", ["anthropic", "openai-chat"])
def test_what_is_not_of_the_provider_costs_no_attempt(store, provider, start, dialect):
    provider.answers = [answer for answer, *_ in FOREIGN]
    provider.default = plain(200, MESSAGE)
    worker = start(dialect=dialect, slots=len(FOREIGN))
    jobs = family()
    ids = enqueue(store, jobs, len(FOREIGN), attempts="1")
    store.open(jobs)
    wait_until(lambda: all(store.past(id) for id in ids), "the jobs to come back")
    assert {past.get("attempts") for past in map(store.past, ids)} == {None}
    why = [store.past(id)["why"] for id in ids]
    for _, status, shown in FOREIGN:
        assert any(each.startswith(status) and shown in each and "upstream's url" in each
                   for each in why), (shown, why)
    assert "pressure prov:default unreached" in str(store.events("pressure"))
    assert "something answers in place of the provider" in worker.log()
    wait_until(lambda: store.promote() and all(store.result(id) for id in ids), "the results")
    results = [wait_result(store, id) for id in ids]
    assert {(each["state"], each["attempts"]) for each in results} == {("done", 0)}
    assert len(provider.requests) == 2 * len(FOREIGN)


def test_an_upstream_where_something_else_answers_is_left_to_other_workers(store, provider,
                                                                           start):
    provider.default = typed(200, "text/html", LOGIN)
    worker = start(slots=1)
    jobs = family()
    ids = enqueue(store, jobs, 4)
    store.open(jobs)
    worker.wait_log("this worker does not reach an upstream")
    assert len(provider.requests) == 3
    provider.default = sse()
    worker.wait_log("this worker reaches an upstream again")
    wait_result(store, ids[3])


@pytest.mark.parametrize("dialect", ["anthropic", "openai-chat"])
@pytest.mark.parametrize("nothing", [b"{}", b"null", b"[]"])
def test_json_that_says_nothing_is_no_answer(store, provider, start, dialect, nothing):
    provider.answers = [typed(200, "application/json", nothing)]
    provider.default = plain(200, MESSAGE)
    start(dialect=dialect)
    jobs, id = one_job(store)
    wait_until(lambda: store.past(id), "the job to come back")
    assert store.past(id)["why"].startswith("200, but no answer.")
    wait_until(lambda: store.promote() and store.result(id), "the result")
    result = wait_result(store, id)
    assert (result["state"], result["attempts"]) == ("done", 1)


@pytest.mark.parametrize("dialect, nothing", [
    ("openai-chat", b"data: [DONE]\n\n"),
    ("openai-chat", b": still there\n\ndata: [DONE]\n\n"),
    ("anthropic", b'data: {"type":"ping"}\n\ndata: {"type":"message_stop"}\n\n')])
def test_a_stream_of_nothing_but_its_end_is_no_answer(store, provider, start, dialect, nothing):
    provider.answers = [typed(200, "text/event-stream", nothing)]
    provider.default = plain(200, MESSAGE)
    start(dialect=dialect)
    jobs, id = one_job(store)
    wait_until(lambda: store.past(id), "the job to come back")
    assert store.past(id)["why"] == "The provider's stream ended without an answer."
    wait_until(lambda: store.promote() and store.result(id), "the result")
    result = wait_result(store, id)
    assert (result["state"], result["attempts"]) == ("done", 1)


def test_a_status_as_text_in_an_error_within_a_200_counts_as_that_status(store, provider, start):
    provider.answers = [typed(200, "application/json",
                              b'{"error":{"code":"429","message":"Slow down"}}')]
    provider.default = plain(200, MESSAGE)
    start(dialect="openai-chat")
    jobs, id = one_job(store)
    assert wait_result(store, id)["attempts"] == 0


def test_bytes_in_place_of_json_are_paid_for_once(store, provider, start):
    provider.default = typed(200, "audio/mpeg", b"\xff\xfb\x90\x00")
    start()
    jobs, id = one_job(store)
    result = wait_result(store, id)
    assert (result["state"], result["reason"], result["body"]) == ("dead", "not_json", "//uQAA==")
    assert len(provider.requests) == 1


def test_json_that_is_broken_is_tried_again_and_its_beginning_shown(store, provider, start):
    provider.answers = [plain(200, b'{"id": "msg_1", "content": [')]
    start()
    jobs, id = one_job(store)
    wait_until(lambda: store.past(id).get("attempts") == "1", "the failure")
    assert '"msg_1' in store.past(id)["why"]
    promote(store)
    assert wait_result(store, id)["state"] == "done"


def test_an_error_that_comes_as_200_is_an_error(store, provider, start):
    provider.answers = [plain(200, {"type": "error", "error": {"type": "overloaded_error"}}),
                        plain(200, {"error": {"message": "gateway"}})]
    start()
    jobs, id = one_job(store, attempts="1")
    wait_until(lambda: store.events("pressure"), "the pressure", 10)
    result = wait_result(store, id)
    assert result["state"] == "dead" and "gateway" in result["text"]


def test_a_result_that_is_too_large_is_done_all_the_same_32(store, provider, start):
    large = dict(MESSAGE, content=[{"type": "text", "text": "x" * (9 << 20)}])
    provider.default = plain(200, large)
    start()
    jobs, id = one_job(store)
    result = wait_result(store, id, 20)
    assert result["state"] == "done" and result["format"] == "result_too_large"
    assert result["body"] is None and result["size"] > 9 << 20
    assert result["usage"]["read"] == 30 and len(provider.requests) == 1


def test_an_answer_beyond_the_worker_s_bound_is_not_paid_for_twice(store, provider, start):
    provider.default = plain(200, b'"' + b"x" * (2 << 20) + b'"')
    start(worker="  response_size_max: 1m\n")
    jobs, id = one_job(store)
    result = wait_result(store, id)
    assert result["state"] == "done" and result["format"] == "result_too_large"
    assert len(provider.requests) == 1


def test_bytes_that_are_no_json_are_carried_as_text_or_base64(store, provider, start):
    provider.answers = [plain(200, b"hello \xc3\xa4"), plain(200, b"\xff\x00")]
    start(dialect="raw", slots=1)
    jobs = family()
    first, second = enqueue(store, jobs, 2)
    store.open(jobs)
    text, binary = wait_result(store, first), wait_result(store, second)
    assert text["format"] == "text" and text["body"] == "hello \u00e4"
    assert binary["format"] == "base64" and binary["body"] == "/wA="


def connecting(port):
    """How many connections to this port wait for an answer."""
    with open("/proc/net/tcp", encoding="ascii") as file:
        rows = [line.split() for line in list(file)[1:]]
    return sum(row[2].endswith(f":{port:04X}") and row[3] == "02" for row in rows)


def test_a_job_that_is_cancelled_while_it_connects_harms_nobody(store, start):
    """A listener whose queue is full: whoever connects waits."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        waiting = []
        for _ in range(4):
            other = socket.socket()
            other.setblocking(False)
            other.connect_ex(listener.getsockname())
            waiting.append(other)
        port = listener.getsockname()[1]
        before = connecting(port)
        worker = start(url=f"http://127.0.0.1:{port}", slots=4, args=("--lease", "900ms"))
        jobs = family()
        ids = enqueue(store, jobs, 4)
        store.open(jobs)
        wait_until(lambda: connecting(port) == before + 4, "four that connect")
        for id in ids:
            assert store.ok("cancel", id) == ["ended"]
        wait_until(lambda: worker.process.poll() is not None or
                   store.lane(jobs.lane).in_use == 0, "the end of the runs")
        assert worker.process.poll() is None, worker.log()[-500:]
        for other in waiting:
            other.close()


def test_limits_seen_in_headers_are_reported(store, provider, start):
    headers = {"anthropic-ratelimit-requests-limit": "50",
               "anthropic-ratelimit-input-tokens-limit": "450000",
               "anthropic-ratelimit-output-tokens-limit": "90000"}
    provider.default = plain(200, MESSAGE, **headers)
    start()
    jobs, id = one_job(store)
    wait_result(store, id)
    assert store.events("done")[0].split(" ")[-1].startswith("r=50,i=450000,o=90000,w=")


def test_a_job_without_a_payload_is_dead_and_says_so_17(store, provider, start):
    jobs = family()
    id, = enqueue(store, jobs)
    store.redis.xdel(store.key("jobs"), id)
    store.broken = True
    start()
    store.open(jobs)
    wait_until(lambda: store.dead() == [id], "the dead letter")
    assert store.past(id)["reason"] == "payload_missing" and provider.requests == []


def test_a_dead_job_that_is_queued_again_runs_from_where_it_was_put(store, provider, start):
    provider.answers = [error(400, "invalid_request_error")]
    start()
    jobs, id = one_job(store, ref="r", body=body("Caf\u00e9"))
    assert wait_result(store, id)["http_status"] == 400
    assert store.redis.xlen(store.key("jobs")) == 0  # its entry was moved
    store.redis.delete(store.key(f"result:{id}"))
    assert store.ok("requeue", id) == ["queued"]
    result = wait_result(store, id)
    assert result["state"] == "done" and result["ref"] == "r"
    first, second = provider.requests
    assert first.body == second.body


def test_many_failures_at_once_leave_nothing_behind(store, provider, start):
    answers = [sse(), error(429, "rate_limit_error", retry_after="0.2"),
               error(500, "api_error"), error(400, "invalid_request_error"), sse_cut(2)]
    provider.answers = [answers[i % len(answers)] for i in range(60)]
    start(slots=20)
    jobs = family()
    ids = enqueue(store, jobs, 60)
    store.open(jobs)
    for id in ids:
        wait_until(lambda: store.promote() and store.result(id), "a result", 30)
    states = [json.loads(store.result(id))["state"] for id in ids]
    assert states.count("dead") == 12 and states.count("done") == 48


TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def test_a_failure_is_one_line_that_names_the_job_its_trace_and_what_happens_now(store,
                                                                                 provider,
                                                                                 start):
    provider.answers = [error(500, "api_error"), error(400, "invalid_request_error")]
    worker = start(args=["--log-json"])
    jobs, id = one_job(store, route="triage", ref="r1", traceparent=TRACE)
    promote(store)
    result = wait_result(store, id)
    assert result["state"] == "dead" and result["traceparent"] == TRACE
    wait_until(lambda: "it is dead" in worker.log(), "the last line")
    said = [line for line in map(json.loads, worker.log().splitlines())
            if line.get("job") == id and line["level"] == "warning"]
    assert [line["event"] for line in said] == ["a run failed; the job is tried again",
                                                "the job was refused; it is dead"]
    for line in said:
        assert (line["route"], line["ref"], line["traceparent"]) == ("triage", "r1", TRACE)
        assert line["upstream"] == "prov" and line["text"] and line["ms"] >= 0
    assert (said[0]["attempt"], said[0]["of"]) == (1, 3)


def test_a_good_job_is_told_at_debug_only(store, provider, start):
    worker = start()
    jobs, id = one_job(store, traceparent=TRACE)
    wait_result(store, id)
    wait_until(lambda: "a job is done" in worker.log(), "the line")
    said = [line for line in worker.log().splitlines() if id in line]
    assert len(said) == 1 and "level=debug" in said[0] and f"traceparent={TRACE}" in said[0]
