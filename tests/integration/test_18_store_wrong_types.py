"""A key of a wrong type under each key each function touches: nothing is half applied.

For every call below the keys it reads or writes are found by watching the server's
MONITOR stream.  Then, key by key, the same situation is made again, the key is given a
type it must not have, and the call is made: it either works (delivery became a stored
result, a derived set was made anew) or it is refused and nothing has changed.
"""

import re
import subprocess

import pytest
import redis

from redis_process import redis_command, wait_up
from store import NEVER, OPEN, WRITING, Family, Store, Worker, library_plain, wait_until


def scene(store):
    """Two families and an ancestor, a worker with leases of each kind, later, dead, ended
    ids, a deadline that has passed, a dying session."""
    root = Family(1)
    leaf = Family(2, ancestors=[root.lane], px=[root.id, Family(2).id], hold_max=5)
    cold = Family(3, hold_max=1)
    ids = store.enqueue(leaf, 12, upstream="acme", body="{}", reply="box")
    store.enqueue(cold, 3)
    store.enqueue(leaf, 1, "now")
    entry = store.add(upstream="acme", body="{}", reply="box")
    store.admit(entry, runs=[(cold, "n", [entry])], deadlines=[(entry, store.now() + 600000)])
    store.redis.zadd(store.key("deadline"), {entry: store.now()})
    store.grant(root.lane, gate=OPEN, until=NEVER, life=60000, family="", px=root.id)
    store.open(leaf, life=60000)
    store.grant_budget("acme:large", pace=100, i=1000000)
    store.reap()
    dead = Worker(store)
    dead.claim(0, 1)
    worker = Worker(store)
    jobs = worker.claim(0, 1, 2, 3, 4).jobs
    assert worker.fail(jobs[0], "fatal") == "dead"
    assert worker.fail(jobs[1], "retry", delay_ms=1) == "later"
    assert worker.fail(jobs[2], "defer") == "back"
    store.ok("cancel", ids[9])
    dead.die()
    store.wait_past(store.now())
    return {"worker": worker, "jobs": jobs[3:], "family": leaf, "cold": cold, "ids": ids,
            "root": root, "dead": dead, "gone": jobs[0].id,
            "fresh": [store.add(), store.add()], "at": store.cursor()}


def usage(store):
    return f"{store.now()} {store.now()} 500 0 5 5"


CALLS = {
    "admit": lambda store, s: admit_more(store, s),
    "grant": lambda store, s: store.ok(
        "grant", store.owner, "0-1", 1, s["root"].lane, "", s["root"].id, "main", "acme:large",
        1, 2, OPEN, 0, 0, 0, 10, 1, NEVER, 10, 60000, 0, 0, 0, 1, "acme:large", 50, 0, 0, 0, 0, 0),
    "glance": lambda store, s: store.ok("glance", s["family"].id),
    "count": lambda store, s: store.ok("count"),
    "reap": lambda store, s: store.reap(),
    "promote": lambda store, s: store.promote(),
    "expire": lambda store, s: store.expire(),
    "hello": lambda store, s: Worker(store, replaces=s["dead"].nonce),
    "attach": lambda store, s: s["worker"].attach(),
    "beat": lambda store, s: store.ok("beat", s["worker"].nonce, s["worker"].c, 2, 30000),
    "claim": lambda store, s: s["worker"].claim(10, 11),
    "settle": lambda store, s: s["worker"].settle(s["jobs"], claim=[3, 9], reply="box",
                                                  usage=usage(store)),
    "begin": lambda store, s: store.ok("begin", s["worker"].nonce, s["worker"].c,
                                       s["jobs"][0].slot, s["jobs"][0].q, usage(store)),
    "fail": lambda store, s: s["worker"].fail(s["jobs"][1], "retry", delay_ms=100000),
    "fatal": lambda store, s: s["worker"].fail(s["jobs"][1], "fatal", reply="box"),
    "release": lambda store, s: s["worker"].release(s["jobs"]),
    "bye": lambda store, s: s["worker"].bye(),
    "settle_late": lambda store, s: store.ok("settle_late", s["ids"][10], "box", 1000, "x"),
    "cancel": lambda store, s: store.ok("cancel", s["ids"][10]),
    "drop": lambda store, s: store.ok("drop", s["gone"]),
    "requeue": lambda store, s: store.ok("requeue", s["gone"]),
    "restore": lambda store, s: store.ok("restore", s["gone"], s["ids"][10]),
    "pause": lambda store, s: store.ok("pause", s["family"].id, "on"),
    "move": lambda store, s: store.ok("move", store.owner, "special", s["family"].id),
    "steer": lambda store, s: store.ok("steer", s["worker"].nonce, "quiet", "somebody"),
    "warm": lambda store, s: store.ok("warm", s["family"].id, "somebody"),
    "unpark": lambda store, s: store.ok("unpark", "acme", "somebody"),
    "hold_route": lambda store, s: store.ok("hold", "off", "x", "triage"),
    "hold": lambda store, s: store.ok("hold", "off"),
    "ledger": lambda store, s: store.ok("ledger", store.owner, "0-1", 1000, 3, "", "all", "1",
                                        "485000", "a", "2", "485001", "b", "3"),
}


def admit_more(store, s):
    entry, second = s["fresh"]
    answer = store.admit(second, at=s["at"], families=[s["family"]], runs=[(s["family"], "l", [entry])],
                         later=[(second, 5, s["family"].id, "n", "x")], gone=[second],
                         deadlines=[(entry, 9), (second, NEVER)],
                         prefixes=[("p", "{}")])
    assert answer[0] == "OK"


def fresh(client):
    client.flushall()
    store = Store(client)
    store.rule()
    return store, scene(store)


def keys_touched(client, path, call):
    """Keys of every command the call makes inside Redis."""
    store, s = fresh(client)
    watcher = redis.Redis(unix_socket_path=path, decode_responses=True)
    keys = set()
    with watcher.monitor() as monitor:
        call(store, s)
        client.execute_command("ECHO", "that is all")
        for line in monitor.listen():
            if "that is all" in line["command"]:
                break
            if line["client_type"] == "lua":
                keys.update(re.findall(r"warmq:[^ ]+", line["command"]))
    watcher.close()
    return {key for key in keys if not key.endswith(":wake")}


def spoil(client, key):
    """Gives the key a type that it must not have, if it is known to have one."""
    name = key.split(":", 1)[1]
    client.delete(key)
    if name.split(":")[0] in ("slim", "px", "prefix", "result"):
        client.rpush(key, "a list")
    else:
        client.set(key, "a string")


def snapshot(client, without):
    """Everything that is stored, but counters of what went wrong."""
    state = {}
    for key in client.keys():
        kind = client.type(key)
        if key in without:
            continue
        read = {"string": client.get, "hash": client.hgetall,
                "list": lambda k: client.lrange(k, 0, -1),
                "zset": lambda k: client.zrange(k, 0, -1, withscores=True),
                "set": client.smembers, "stream": client.xrange}[kind]
        state[key] = read(key)
    state.get("warmq:meta", {}).pop("function_errors", None)
    return state


@pytest.mark.parametrize("name", CALLS)
def test_a_wrong_type_stops_a_call_before_its_first_write_4(redis_server, name):
    client = redis.Redis(unix_socket_path=redis_server, decode_responses=True)
    call = CALLS[name]
    touched = keys_touched(client, redis_server, call)
    assert "warmq:meta" in touched or name not in ("admit", "grant", "reap")
    kinds = sorted({re.sub(r"\d{13}-\d+|[0-9a-f]{16,32}", "*", key) for key in touched})
    assert kinds, "the call touches nothing?"
    refused = set()
    for kind in kinds:
        pattern = re.compile("^" + re.escape(kind).replace(r"\*", r"[0-9a-f-]+") + "$")
        store, s = fresh(client)
        # Ids and nonces are new: damage the keys of this kind that exist or would be made.
        probe = {key for key in client.keys() if pattern.match(key)} or (
            {kind} if "*" not in kind else set())
        for key in probe:
            spoil(client, key)
        before = snapshot(client, probe)
        try:
            call(store, s)
        except redis.ResponseError as error:
            assert str(error).startswith("warmq "), error
            assert snapshot(client, probe) == before, (name, kind)
            refused.add(kind)
        else:
            if kind == "warmq:reply:box":
                assert int(client.hget("warmq:meta", "delivery_errors")) > 0
    assert not refused & {"warmq:events", "warmq:reply:box", "warmq:result:*"}, \
        "what others may have spoilt must not stop a call"
    assert refused, "no key of its own was of a wrong type?"
    client.flushall()
    client.close()


def test_errors_are_counted(store):
    store.broken = True
    store.redis.set(store.key("lanes"), "x")
    family = Family(1)
    entry = store.add()
    with pytest.raises(redis.ResponseError, match="warmq admit: WRONGTYPE.*; warmq:lanes is a "
                       "string and should be a hash"):
        store.admit(entry, families=[family], runs=[(family, "n", [entry])])
    assert store.meta("function_errors") == "1"
    store.redis.delete(store.key("lanes"))
    assert store.admit(entry, families=[family], runs=[(family, "n", [entry])])[0] == "OK"


def test_a_record_of_another_format_is_not_guessed_at(store):
    store.broken = True
    family = Family(1)
    store.enqueue(family)
    record = store.redis.hget(store.key("lanes"), family.lane)
    store.redis.hset(store.key("lanes"), family.lane, "2" + record[1:])
    with pytest.raises(redis.ResponseError, match="another format"):
        store.open(family)


def test_writing_a_gate_closed_by_hand_is_possible(store):
    # What a repair by hand relies on: records are text, and one grant puts them right.
    family = Family(1)
    ids = store.enqueue(family)
    store.grant(family.lane, gate=WRITING, credits=0)
    store.open(family)
    assert Worker(store).claim().ids == ids


# ---- rights ------------------------------------------------------------------------------

WRITERS = sorted(set(CALLS) - {"glance", "count", "version"})


def written():
    """Commands that the library says it needs, and those with which it writes."""
    text = library_plain()
    listed = re.search(r"WRITES = \{(.*?)\}", text, re.S).group(1)
    used = set(re.findall(r"(?:call|quiet)\('([A-Z]+)'|\{ '([A-Z]+)', key\.", text))
    return set(re.findall(r"[A-Z]+", listed)), {word for pair in used for word in pair if word}


READS = {"EXISTS", "GET", "GETRANGE", "HEXISTS", "HGET", "HGETALL", "HKEYS", "HLEN", "HMGET", "HSCAN", "HVALS",
         "LINDEX", "LLEN", "LRANGE", "PTTL", "SCARD", "SMEMBERS", "STRLEN", "TIME", "TYPE",
         "XINFO", "XLEN", "XRANGE", "XREVRANGE", "ZCARD", "ZRANGE", "ZRANGEBYSCORE",
         "ZREVRANGEBYSCORE", "ZSCORE"}
DELIVERS = {"PUBLISH", "XADD", "XTRIM"}  # may fail, and nothing is lost


def test_the_library_asks_for_every_command_with_which_it_writes_4():
    listed, used = written()
    assert used - READS - DELIVERS <= listed
    assert len(listed) > 10


def test_the_library_asks_for_whole_commands_4(redis_server):
    """Redis 8 refuses to speak of a command that has too few words, or too many."""
    client = redis.Redis(unix_socket_path=redis_server, decode_responses=True)
    behind = dict(re.findall(r"(\w+) = (\d)", re.search(r"BEHIND = \{(.*?)\}", library_plain())[1]))
    for command in written()[0]:
        words = 2 + int(behind.get(command, 1))
        arity = client.execute_command("COMMAND", "INFO", command)[command.lower()]["arity"]
        assert words == arity if arity > 0 else words >= -arity, command
    client.close()


def refused(client, name, command):
    """What the call answers, without this command; nothing may have changed. A library that
    was just loaded has asked for nobody's rights yet."""
    store, s = fresh(client)
    client.function_load(library_plain(), replace=True)
    before = snapshot(client, ())
    client.execute_command("ACL", "SETUSER", "default", f"-{command}")
    try:
        with pytest.raises(redis.ResponseError) as error:
            CALLS[name](store, s)
    finally:
        client.execute_command("ACL", "SETUSER", "default", "+@all")
    assert snapshot(client, ()) == before, (name, command)
    return str(error.value)


def test_a_call_whose_user_may_not_say_one_command_does_nothing_4(redis_server):
    """Redis looks at rights at each command: a call was stopped in the middle, and a job
    whose payload was gone already stayed in its list."""
    client = redis.Redis(unix_socket_path=redis_server, decode_responses=True)
    for command in sorted(written()[0]):
        said = refused(client, "settle", command)
        assert f"warmq settle: this user of Redis may not say {command}; nothing was done" in said
    for name in WRITERS:
        assert "may not say SREM; nothing was done" in refused(client, name, "srem")
    store, s = fresh(client)
    CALLS["settle"](store, s)
    client.flushall()
    client.close()


def parts():
    """Kinds of keys that a call asks for: those of several keys end on a colon."""
    library = library_plain()
    lists = re.search(r"local PARTS = \{(.*?)\}", library, re.S)[1] + re.search(
        r"local KINDS = \{(.*?)\n\}", library, re.S)[1]
    return set(re.findall(r"'([a-z]+:?)'", lists)) - {"stream", "hash", "zset"}


def test_a_call_whose_user_may_not_use_one_kind_of_keys_does_nothing_4(redis_server):
    """A result that may not be stored was lost, of a job that was done."""
    client = redis.Redis(unix_socket_path=redis_server, decode_responses=True)
    kinds = parts()
    used = {re.sub(r":.*", ":", key.split(":", 1)[1]) for _, s in [fresh(client)]
            for key in client.keys()}
    assert used - {"px:", "seed"} <= kinds | {"px:"} and len(kinds) > 30
    try:
        for kind in sorted(kinds):
            own = kind + "*" * kind.endswith(":")
            rights = [f"~warmq:{other}{'*' * other.endswith(':')}" for other in kinds - {kind}]
            store, s = fresh(client)
            client.function_load(library_plain(), replace=True)
            before = snapshot(client, ())
            client.execute_command("ACL", "SETUSER", "poor", "reset", "on", "nopass", "&*", "+@all",
                                   *rights)
            store.redis = redis.Redis(unix_socket_path=redis_server, decode_responses=True,
                                      username="poor", password="any")
            with pytest.raises(redis.ResponseError) as error:
                CALLS["settle"](store, s)
            if kind not in ("meta", "stamp"):  # these are asked for by whoever calls
                assert f"may not read and write warmq:{own}; nothing was done" in str(error.value)
            assert snapshot(client, ()) == before, kind
    finally:
        client.execute_command("ACL", "DELUSER", "poor")
        client.flushall()


def test_rights_are_not_asked_for_with_every_call_4(redis_server):
    """It takes a quarter of a job's life: of one caller, once a second."""
    client = redis.Redis(unix_socket_path=redis_server, decode_responses=True)
    store, s = fresh(client)
    each = len(written()[0]) + len(parts())
    counts = library_plain().replace("if not may(", "if redis.call('PING') and not may(")
    client.function_load(counts, replace=True)
    client.config_resetstat()
    for _ in range(20):
        CALLS["beat"](store, s)
    asked = client.info("commandstats")["cmdstat_ping"]["calls"]
    assert asked % each == 0 and 1 <= asked // each < 10
    client.function_load(library_plain(), replace=True)
    client.flushall()
    client.close()


def test_rights_that_are_taken_are_missed_in_a_while_4(redis_server):
    client = redis.Redis(unix_socket_path=redis_server, decode_responses=True)
    store, s = fresh(client)
    CALLS["beat"](store, s)
    client.execute_command("ACL", "SETUSER", "default", "-srem")

    def is_refused():
        try:
            CALLS["beat"](store, s)
        except redis.ResponseError as error:
            return "may not say SREM" in str(error)
        return False

    try:
        wait_until(is_refused, "the question for rights", 10)
    finally:
        client.execute_command("ACL", "SETUSER", "default", "+@all")
        client.flushall()
        client.close()


# Calls that a session or the ruler makes by the thousand, in its own name.
BUSY = {"admit", "grant", "beat", "claim", "settle", "begin", "fail", "fatal", "release"}


def test_nobody_has_the_rights_of_another_who_says_the_same_4(redis_server):
    """`hold off` of somebody who may was taken, for a second, for the right of all who say it."""
    client = redis.Redis(unix_socket_path=redis_server, decode_responses=True)
    client.execute_command("ACL", "SETUSER", "poor", "on", "nopass", "~*", "&*", "+@all", "-srem")
    poor = redis.Redis(unix_socket_path=redis_server, decode_responses=True, username="poor",
                       password="any")
    try:
        for name in sorted(set(WRITERS) - BUSY):
            store, s = fresh(client)
            CALLS[name](store, s)
            before = snapshot(client, ())
            store.redis = poor
            with pytest.raises(redis.ResponseError, match="may not say SREM; nothing was done"):
                CALLS[name](store, s)
            assert snapshot(client, ()) == before, name
    finally:
        client.execute_command("ACL", "DELUSER", "poor")
        client.flushall()
        client.close()
        poor.close()


def test_a_call_in_a_redis_with_a_renamed_command_does_nothing_4(tmp_path):
    path = str(tmp_path / "redis.sock")
    with subprocess.Popen(redis_command(path, "--rename-command", "XDEL", "hidden"),
                          stdout=subprocess.DEVNULL) as server:
        client = redis.Redis(unix_socket_path=path, decode_responses=True)
        try:
            wait_up(client)
            client.function_load(library_plain(), replace=True)
            with pytest.raises(redis.ResponseError, match="NOPERM|is renamed in this Redis"):
                fresh(client)
            assert client.keys() in ([], ["warmq:jobs"])
        finally:
            client.close()
            server.kill()
