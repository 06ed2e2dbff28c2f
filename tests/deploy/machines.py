"""Machines of a fleet: network namespaces of this one, each with a wire to the clients and the
providers and another to the database. A wire can be pulled out.
"""

import os
import shutil
import subprocess
from contextlib import contextmanager, suppress

from msgspec import Struct

__all__ = ["Machine", "machines", "why_not"]


class Machine(Struct):
    """One of them.

    Attributes:
        number: tells it from the others.
        name: of its namespace.
    """

    number: int
    name: str

    @property
    def within(self):
        """The command that runs another one in it."""
        return "ip", "netns", "exec", self.name

    def here(self, net):
        """Our address on its wire to the clients (213) or to the database (214)."""
        return f"10.{net}.{self.number}.1"

    @property
    def address(self):
        """Where clients find it."""
        return f"10.213.{self.number}.2"

    def pull(self, net):
        """Pull a wire out: what is sent on it is lost, and nobody is told."""
        _ip("link", "set", _wire(self, net), "down")

    def plug(self, net):
        """Put it in again."""
        _ip("link", "set", _wire(self, net), "up")


def why_not():
    """Why there can be no such machines here, or nothing."""
    if os.name != "posix" or shutil.which("ip") is None:
        return "network namespaces need Linux and iproute2"
    if os.geteuid() != 0:
        return "network namespaces need root"
    made = subprocess.run(
        ["ip", "netns", "add", "ullage-try"], capture_output=True, check=False
    )
    if made.returncode:
        return "this machine allows no network namespaces"
    _ip("netns", "del", "ullage-try")
    return ""


@contextmanager
def machines(count):
    """So many machines, for as long as the block lasts."""
    found = [
        Machine(number, f"ullage-{os.getpid()}-{number}")
        for number in range(1, count + 1)
    ]
    try:
        for machine in found:
            _ip("netns", "add", machine.name)
            _ip("-n", machine.name, "link", "set", "lo", "up")
            for net in (213, 214):
                _connect(machine, net)
        yield found
    finally:
        for machine in found:
            for net in (213, 214):
                with suppress(subprocess.CalledProcessError):
                    _ip("link", "del", _wire(machine, net))
            with suppress(subprocess.CalledProcessError):
                _ip("netns", "del", machine.name)


def _wire(machine, net):
    return f"ul{net}n{machine.number}"


def _connect(machine, net):
    ours, theirs = _wire(machine, net), f"net{net}"
    _ip(
        "link",
        "add",
        ours,
        "type",
        "veth",
        "peer",
        "name",
        theirs,
        "netns",
        machine.name,
    )
    _ip("addr", "add", f"{machine.here(net)}/30", "dev", ours)
    _ip("link", "set", ours, "up")
    _ip(
        "-n",
        machine.name,
        "addr",
        "add",
        f"10.{net}.{machine.number}.2/30",
        "dev",
        theirs,
    )
    _ip("-n", machine.name, "link", "set", theirs, "up")


def _ip(*words):
    subprocess.run(["ip", *words], check=True, capture_output=True)
