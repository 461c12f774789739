"""Jobs that are run by a program of the user's."""

import json
import os
import signal
import stat
import sys
import urllib.request

import pytest

from ports import free_port
from store import wait_until
from worker_rig import KEY, body, enqueue, family, provider, split_jobs, start, wait_result


@pytest.fixture
def handler(tmp_path, start):
    """Starts a worker whose handler is this Python text."""
    def start_handler(text, **options):
        path = tmp_path / "handler.py"
        path.write_text("import json, os, sys, time\n" + text)
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        worker = f"  handler: [{sys.executable}, {path}]\n" + options.pop("worker", "")
        return start(executor="handler", worker=worker, **options)
    return start_handler


def one_job(store, **fields):
    jobs = family()
    id, = enqueue(store, jobs, **fields)
    store.open(jobs)
    return jobs, id


def test_a_handler_gets_the_body_and_its_output_is_the_result(store, handler):
    handler("job = json.load(sys.stdin)\nprint(json.dumps({'said': job['messages']}))")
    jobs, id = one_job(store, ref="r")
    result = wait_result(store, id)
    assert result["state"] == "done" and result["ref"] == "r" and result["format"] == "json"
    assert result["body"] == {"said": [{"role": "user", "content": "Hello"}]}
    assert result["usage"]["output"] is None


def test_a_handler_gets_a_split_body_whole_and_unchanged(store, handler):
    handler("sys.stdout.write(sys.stdin.read())")
    jobs, (id,) = split_jobs(store, 1)
    store.open(jobs)
    assert wait_result(store, id)["body"] == {
        "model": "m", "system": "Be brief.",
        "messages": [{"role": "user", "content": "Why?"}], "max_tokens": 9}


def test_a_handler_is_told_about_its_job_but_not_the_keys(store, handler):
    handler("print(json.dumps(dict(os.environ)))")
    jobs, id = one_job(store, route="triage", ref="r", handler="summarise")
    told = wait_result(store, id)["body"]
    assert told["WARMQ_JOB"] == id and told["WARMQ_ROUTE"] == "triage"
    assert told["WARMQ_REF"] == "r" and told["WARMQ_HANDLER"] == "summarise"
    assert told["WARMQ_UPSTREAM"] == "prov" and told["WARMQ_ATTEMPT"] == "1"
    assert KEY not in json.dumps(told)


def test_a_handler_inherits_no_descriptor(store, handler):
    """A connection to Redis in its hands could do whatever the worker may, and outlive it."""
    handler("fds = [fd for fd in os.listdir('/proc/self/fd')\n"
            "       if os.path.exists('/proc/self/fd/' + fd)]\n"
            "print(json.dumps({fd: os.readlink('/proc/self/fd/' + fd) for fd in fds}))")
    jobs, id = one_job(store)
    held = wait_result(store, id)["body"]
    assert sorted(held) == ["0", "1", "2"], held


def test_status_75_means_try_again(store, handler):
    handler("sys.stderr.write('first\\nnot yet\\n')\n"
            "sys.exit(75 if os.environ['WARMQ_ATTEMPT'] == '1' else 0)")
    jobs, id = one_job(store)
    wait_until(lambda: store.past(id).get("attempts") == "1", "the attempt")
    assert "status 75" in store.past(id)["why"] and "not yet" in store.past(id)["why"]
    wait_until(lambda: store.promote()[0], "the back-off")
    assert wait_result(store, id)["attempts"] == 1


def test_any_other_status_is_the_end(store, handler):
    worker = handler("sys.stderr.write('it is broken\\n')\nsys.exit(3)")
    jobs, id = one_job(store)
    result = wait_result(store, id)
    assert result["state"] == "dead" and result["reason"] == "exit_3"
    assert "it is broken" in result["text"] and "it is broken" in worker.log()


def test_a_handler_that_is_killed_is_a_failed_attempt(store, handler):
    handler("os.kill(os.getpid(), 9)")
    jobs, id = one_job(store, attempts="1")
    result = wait_result(store, id)
    assert result["state"] == "dead" and result["reason"] == "signal_9"
    assert result["text"] == "The handler died of signal 9."


TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def test_each_line_of_a_handler_says_whose_it_is(store, handler):
    """Its route was missing, and who had no trace was said to have an empty one."""
    worker = handler("sys.stderr.write('a word\\n')")
    for fields, said in (({"traceparent": TRACE}, f" traceparent={TRACE}"), ({}, "")):
        jobs, id = one_job(store, route="triage", **fields)
        wait_result(store, id)
        line, = [line for line in worker.log().splitlines() if "a handler says" in line and id in line]
        assert f"job={id} route=triage upstream=prov{said} text=" in line
        assert said or "trace" not in line


def test_a_handler_that_takes_too_long_is_ended_with_its_children(store, handler, tmp_path):
    handler(f"open({str(tmp_path / 'pid')!r}, 'w').write(str(os.getpid()))\n"
            "os.system('sleep 60')")
    jobs, id = one_job(store, timeout="4s", attempts="1")
    result = wait_result(store, id)
    assert result["reason"] == "timeout"
    pid = int((tmp_path / "pid").read_text())
    wait_until(lambda: not os.path.exists(f"/proc/{pid}"), "the process to end")


def leave_behind(tmp_path, words=""):
    """A process in the group of its handler that does not listen to SIGTERM."""
    return ("import signal, subprocess\n"
            "child = subprocess.Popen(['sh', '-c', \"trap '' TERM; sleep 60\"],\n"
            "    stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,\n"
            "    stderr=subprocess.DEVNULL)\n"
            f"open({str(tmp_path / 'pid')!r}, 'w').write(str(child.pid))\n{words}")


def test_what_a_handler_leaves_behind_ends_with_it(store, handler, tmp_path):
    """It went on for ever: one process more with each job."""
    handler(leave_behind(tmp_path, "print('done')"))
    jobs, id = one_job(store)
    assert wait_result(store, id)["body"] == "done\n"
    wait_until(lambda: not is_running(int((tmp_path / "pid").read_text())), "its end")


def test_a_child_that_ignores_the_end_of_its_handler_is_killed(store, handler, tmp_path):
    """The handler ends at SIGTERM, as a shell does, and its child ran beside the next try."""
    handler(leave_behind(tmp_path, "time.sleep(60)"))
    jobs, id = one_job(store, timeout="3s", attempts="1")
    assert wait_result(store, id)["reason"] == "timeout"
    wait_until(lambda: not is_running(int((tmp_path / "pid").read_text())), "its end")


def test_a_handler_has_the_limit_of_files_with_which_its_worker_was_started(store, handler):
    """The worker raises its own: there are programs that close all files they could have."""
    handler("import resource\nprint(resource.getrlimit(resource.RLIMIT_NOFILE)[0])",
            files=(300, 4096))
    jobs, id = one_job(store)
    assert wait_result(store, id)["body"] == 300


def test_a_worker_that_stops_at_once_waits_for_the_end_of_its_handlers(store, handler,
                                                                       tmp_path):
    worker = handler(f"open({str(tmp_path / 'pid')!r}, 'w').write(str(os.getpid()))\n"
                     "time.sleep(60)")
    jobs, id = one_job(store)
    wait_until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text(),
               "the handler")
    worker.signal(signal.SIGTERM)
    worker.wait_log("stopping")
    assert worker.stop() == 0, worker.log()
    assert not is_running(int((tmp_path / "pid").read_text()))
    assert store.list(jobs, "back:n") == [id], "given back"


def test_handlers_end_with_a_worker_that_is_killed(store, handler, tmp_path):
    """The whole group, and also one that does not listen to SIGTERM."""
    port = free_port()
    worker = handler("import signal, subprocess\n"
                     "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
                     "child = subprocess.Popen(['sleep', '60'])\n"
                     f"path = {str(tmp_path)!r} + '/' + os.environ['WARMQ_JOB']\n"
                     "open(path + '.new', 'w').write(f'{os.getpid()} {child.pid}')\n"
                     "os.rename(path + '.new', path + '.pids')\ntime.sleep(60)",
                     slots=2, worker=f"  listen: 127.0.0.1:{port}\n")
    jobs = family()
    enqueue(store, jobs, 2)
    store.open(jobs)
    wait_until(lambda: len(list(tmp_path.glob("*.pids"))) == 2, "the handlers")
    pids = [int(pid) for path in tmp_path.glob("*.pids") for pid in path.read_text().split()]
    assert len(pids) == 4 and all(os.path.exists(f"/proc/{pid}") for pid in pids)
    # On a busy machine they may run before their worker had its turn to tell the guard.
    assert urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=120).status == 200
    worker.signal(signal.SIGKILL)
    worker.wait()
    wait_until(lambda: not any(is_running(pid) for pid in pids), "the processes to end", 20)


def is_running(pid):
    """Not a zombie either, which only its parent can remove."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as stat_file:
            return stat_file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_a_handler_of_a_cancelled_job_is_ended(store, handler, tmp_path):
    handler(f"open({str(tmp_path / 'pid')!r}, 'w').write(str(os.getpid()))\ntime.sleep(60)",
            args=("--lease", "900ms"))
    jobs, id = one_job(store)
    wait_until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text(),
               "the handler")
    pid = int((tmp_path / "pid").read_text())
    assert store.ok("cancel", id) == ["ended"]
    wait_until(lambda: not os.path.exists(f"/proc/{pid}"), "the process to end")


def test_a_handler_need_not_read_its_input(store, handler):
    handler("print('done')")
    jobs, id = one_job(store, body=body("x" * 500000))
    result = wait_result(store, id)
    assert result["format"] == "text" and result["body"] == "done\n"


def test_output_beyond_the_bound_is_done_all_the_same(store, handler):
    handler("sys.stdout.write('x' * (9 << 20))")
    jobs, id = one_job(store)
    result = wait_result(store, id, 20)
    assert result["state"] == "done" and result["format"] == "result_too_large"
    assert result["size"] == 9 << 20


def test_a_handler_that_does_not_exist_costs_no_attempt(store, start):
    worker = start(executor="handler", worker="  handler: [/no/such/program]\n")
    jobs, id = one_job(store, attempts="1")
    worker.wait_log("cannot be started")
    wait_until(lambda: store.past(id).get("deferrals") == "1", "the job to come back")


def test_handlers_run_side_by_side(store, handler):
    handler("time.sleep(0.3)\nprint('{}')", slots=10)
    jobs = family()
    ids = enqueue(store, jobs, 10)
    store.open(jobs)
    wait_until(lambda: len(store.redis.keys(store.key("result:*"))) == len(ids), "results", 20)
