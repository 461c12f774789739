"""Attacks by a fifth one, who went through what is known to break elsewhere."""

import http.client
import socket

from fleet import Fleet, wait_until

from ports import free_port

SILENT = [b"", b"GET /metrics HTTP/1.1\r\nHo", b"POST /api/v1/hold HTTP/1.1\r\nHost: localhost"
          b"\r\nContent-Length: 9\r\n\r\n", b"GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n"]


def listening(tmp_path):
    """A fleet whose scheduler and worker serve pages, and their two ports."""
    ports = free_port(), free_port()
    fleet = Fleet(tmp_path, settings=f'worker:\n  listen: "127.0.0.1:{ports[1]}"\n')
    write = fleet.write_config

    def write_config(dialect="anthropic"):
        write(dialect)
        text = fleet.config.read_text()
        fleet.config.write_text(text.replace('listen: "off"', f"listen: 127.0.0.1:{ports[0]}", 1))

    fleet.write_config = write_config
    return fleet, ports


def get(port, path, seconds):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=seconds)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        answer.read()
        return answer.status
    finally:
        connection.close()


# ---- ports -------------------------------------------------------------------------------

def test_health_is_answered_whatever_sits_idle_on_the_port(tmp_path):
    """1,000 silent connections kept /healthz and /metrics waiting for 50 s."""
    fleet, ports = listening(tmp_path)
    with fleet:
        fleet.start_all()
        for port in ports:
            wait_until(lambda: get(port, "/healthz", 5) == 200, "health")
            seats = []
            try:
                for number in range(700):
                    seats.append(socket.create_connection(("127.0.0.1", port), 10))
                    seats[-1].sendall(SILENT[number % 4])
                for path in ("/healthz", "/metrics"):
                    assert get(port, path, 10) == 200
            finally:
                for seat in seats:
                    seat.close()
