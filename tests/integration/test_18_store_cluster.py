"""A cluster of one node: every key of every function lies in the slot of the declared one.

Redis checks only keys that are declared while slots move, and refuses the others if they
belong to another slot.  So a namespace in a cluster is a hash tag, and the one declared key
stands for all."""

import re

import pytest

from daemons import Server
from ports import free_port
from store import OPEN, Store, Worker, library, wait_until
from test_18_store_wrong_types import CALLS, scene

NAMESPACE = "{warmq}"


@pytest.fixture(scope="module")
def cluster():
    with Server("--cluster-enabled", "yes", "--port", str(free_port()), "--cluster-port",
                str(free_port())) as server:
        server.client.execute_command("CLUSTER", "ADDSLOTSRANGE", 0, 16383)
        wait_until(lambda: "cluster_state:ok" in str(server.client.execute_command(
            "CLUSTER", "INFO")), "the cluster")
        server.client.execute_command("FUNCTION", "LOAD", "REPLACE", library())
        yield server


@pytest.mark.parametrize("name", CALLS)
def test_every_key_lies_in_the_slot_of_the_declared_one_27(cluster, name):
    cluster.client.flushall()
    store = Store(cluster.client, NAMESPACE)
    store.rule()
    s = scene(store)
    CALLS[name](store, s)
    assert all(key.startswith(NAMESPACE + ":") for key in cluster.client.keys())
    assert store.meta("function_errors") is None


def test_a_namespace_without_a_tag_is_told_apart_27(cluster):
    """Redis itself refuses it: nothing is written on the wrong node."""
    cluster.client.flushall()
    store = Store(cluster.client, "warmq")
    with pytest.raises(Exception, match="slot"):
        store.rule()
        scene(store)


def test_every_call_declares_one_key_and_only_readers_say_so_27(cluster):
    functions = cluster.client.execute_command("FUNCTION", "LIST")
    [row] = [dict(zip(row[::2], row[1::2])) for row in functions]
    flags = {dict(zip(f[::2], f[1::2]))["name"]: dict(zip(f[::2], f[1::2]))["flags"]
             for f in row["functions"]}
    assert len(flags) > 20
    readers = {name for name, own in flags.items() if "no-writes" in own}
    assert readers == {"warmq_glance", "warmq_count", "warmq_version"}
    assert all("allow-oom" in own for name, own in flags.items() if name not in readers)
    assert not re.search(r"keys\[[2-9]\]", library()), "one declared key stands for all"


def test_a_worker_of_the_release_before_is_told_its_protocol_27(cluster):
    cluster.client.flushall()
    store = Store(cluster.client, NAMESPACE)
    store.rule()
    worker = Worker(store)
    for number in ("0", "2", "", "x"):
        with pytest.raises(Exception, match=f"warmq speaks protocol 1, not {number}"):
            store.redis.execute_command("FCALL", "warmq_claim", 1, store.key("meta"), number,
                                        worker.nonce, worker.c, 1, 0)
    assert OPEN == 3 and worker.claim().jobs == []
