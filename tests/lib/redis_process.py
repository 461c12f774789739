"""redis_process.py - a redis-server over a Unix socket: how it is started, and that it is up.

    process = subprocess.Popen(redis_command(path), stdout=subprocess.DEVNULL)
    wait_up(redis.Redis(unix_socket_path=path))
"""

import os

import redis

from waiting import wait_until


def redis_command(path, *arguments):
    """It writes beside its socket, and keeps nothing unless the arguments say so."""
    return ["redis-server", "--port", "0", "--unixsocket", path, "--save", "",
            "--dir", os.path.dirname(path), *arguments]


def is_up(client):
    """Whether it answers; one that still loads does not."""
    try:
        return client.ping()
    except (redis.ConnectionError, redis.BusyLoadingError):
        return False


def wait_up(client):
    wait_until(lambda: is_up(client), "redis-server to answer")
