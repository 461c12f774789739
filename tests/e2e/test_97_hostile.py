"""Attacks that were thought up from the documents alone; each one broke something once."""

import socket

from fleet import Fleet, anthropic_body, wait_until


class BlackHole:
    """A port that takes no connection and refuses none."""

    def __init__(self):
        self.sockets = [socket.socket()]
        self.sockets[0].bind(("127.0.0.1", 0))
        self.sockets[0].listen(0)
        self.port = self.sockets[0].getsockname()[1]
        for _ in range(4):  # more than its backlog holds
            client = socket.socket()
            client.setblocking(False)
            client.connect_ex(("127.0.0.1", self.port))
            self.sockets.append(client)

    def close(self):
        for each in self.sockets:
            each.close()


def test_a_provider_that_is_away_leaves_the_slots_to_the_others(tmp_path):
    hole = BlackHole()
    away = f'  away:\n    url: "http://127.0.0.1:{hole.port}"\n    auth: none\n'
    with Fleet(tmp_path, upstream_options=away,
               settings="worker:\n  connect_timeout: 300ms\n") as fleet:
        fleet.start_all(slots=4)
        for number in range(200):
            fleet.redis("XADD", "warmq:jobs", "*", "upstream", "away",
                        "body", anthropic_body(f"{number}"))
        wait_until(lambda: fleet.redis("HGET", "warmq:meta", "unsent"), 10, "failure")
        fleet.burst([anthropic_body(f"main {number}") for number in range(20)], seconds=10)
    hole.close()
