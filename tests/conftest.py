"""Shared set-up: how hard hypothesis tries, and no sockets anywhere."""

import gc
import os
import signal
import socket
from contextlib import ExitStack, suppress
from functools import cache
from pkgutil import resolve_name

import pytest
from hypothesis import HealthCheck, settings

from tests.servers import provider

settings.register_profile(
    "quick",
    max_examples=25,
    deadline=None,
    derandomize=True,  # the same examples everywhere: a test that fails, fails for everybody
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile(
    "deep",
    parent=settings.get_profile("quick"),
    max_examples=2_000,
    derandomize=False,
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # a shell has commands in the background ignore Ctrl-C, and what they start inherits it
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True, scope="session")
def no_network():
    """Whatever reaches for the network fails: ullage is offline by design."""

    def refuse(self, address, *rest):
        host = address[0] if isinstance(address, tuple) else "localhost"
        is_ours = host.startswith(
            "10.213."
        )  # a namespace of this machine: tests.deploy.machines
        if host not in ("127.0.0.1", "::1", "localhost") and not is_ours:
            raise AssertionError("something tried to reach the network")
        return connect(self, address, *rest)

    connect = socket.socket.connect
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket.socket, "connect", refuse)
        yield


@pytest.fixture(autouse=True, scope="session")
def one_trust():
    """The clients of a process share what they trust: each would read it again, for 20 ms."""
    with pytest.MonkeyPatch.context() as patch:
        for reads in (
            "ssl.create_default_context",
            "httpcore2.default_ssl_context",
        ):
            with suppress(ImportError):
                patch.setattr(reads, cache(resolve_name(reads)))
        yield


def pytest_configure(config):
    is_worker = hasattr(config, "workerinput")
    if (
        is_worker
        and config.option.durations is None
        and not config.option.xmlpath
    ):
        from tests.workers import tell_less

        (worker,) = (
            one
            for one in config.pluginmanager.get_plugins()
            if hasattr(one, "sendevent")
        )
        tell_less(worker)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    if config.option.dist != "loadgroup":
        return None
    from tests.workers import Scheduling

    return Scheduling(config, log)


gc.disable()  # until the tests begin: what is collected is no garbage, and would be looked at often


def pytest_collection_finish():
    """What is collected stays to the end, so the garbage collector need not look at it again.

    It looks at the rest less often than it would: a tenth of all processor time went there.
    """
    gc.freeze()
    gc.set_threshold(100_000, 20, 20)
    gc.enable()


@pytest.fixture
def serve():
    """``serve(format, replies, **more)``: a `tests.servers.provider` until the test is over."""
    with ExitStack() as stack:
        yield lambda format, replies=(), **more: stack.enter_context(
            provider(format, replies, **more)
        )
