"""Processes of servers, each at a port of the loopback that is its own."""

import socket
import subprocess
import time
from contextlib import suppress
from random import SystemRandom


def free_port():
    """A port that nobody listens on, and that the system gives to no client by itself."""
    while True:
        port = SystemRandom().randrange(20_000, 32_000)
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port


def answers(port):
    """Whether somebody listens there."""
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
        return True
    return False


def started(command, port=None, is_up=answers, **given):
    """The process of a server that is up, and its port.

    It is begun again as often as it ends by itself: another may have taken the port meanwhile.

    Args:
        command: gives its words for a port.
        port: where it was before; None: at any.
        is_up: whether it is up at a port.
        given: to `subprocess.Popen`.
    """
    process, until = None, time.monotonic() + 60
    while time.monotonic() < until:
        if process is None or process.poll() is not None:
            at = port or free_port()
            process = subprocess.Popen(command(at), **given)
        if is_up(at) and process.poll() is None:
            return process, at
        time.sleep(0.02)
    process.kill()
    raise AssertionError("the server does not answer")
