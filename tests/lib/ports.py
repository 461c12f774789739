"""ports.py - free ports for programs that must be told a number.

    port = free_port()      nobody else gets it while this process lives

The socket that found it stays bound and does not listen: so the system gives the port to
nobody who asks for any, a program that names it can listen there (all of ours reuse
addresses), and a connection before that is refused."""

import socket

reserved = []


def free_port():
    probe = socket.socket()
    probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    probe.bind(("127.0.0.1", 0))
    reserved.append(probe)
    return probe.getsockname()[1]
