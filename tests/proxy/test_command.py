"""A command behind a proxy of its own: its terminal, its signals, its exit code."""

import os
import signal
import sys
import threading
import time

import pytest

from ullage.core.errors import ConfigError
from ullage.doors.proxy.command import behind_a_proxy, run_command
from ullage.doors.proxy.config import Config


def test_the_exit_code_is_the_commands():
    assert (
        run_command([sys.executable, "-c", "raise SystemExit(7)"], os.environ)
        == 7
    )
    killed = "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"
    assert run_command([sys.executable, "-c", killed], os.environ) == 128 + 9


def test_a_signal_goes_to_the_command_and_we_live_on():
    code = "import signal, sys; signal.signal(15, lambda *_: sys.exit(5)); print(1); signal.pause()"
    threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGTERM)).start()
    assert run_command([sys.executable, "-uc", code], os.environ) in (
        5,
        128 + 15,
    )
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL


def test_a_program_that_is_not_there_is_told():
    with pytest.raises(ConfigError, match="no program 'no-such-agent'"):
        run_command(["no-such-agent"], os.environ)


def test_a_proxy_ends_with_its_block():
    before = threading.active_count()
    with behind_a_proxy(Config(listen="127.0.0.1:0")) as (url, watch):
        assert url.startswith("http://127.0.0.1:")
        assert watch.activity.totals.requests == 0
    assert threading.active_count() == before


def test_an_address_that_is_taken_is_told():
    with behind_a_proxy(Config(listen="127.0.0.1:0")) as (url, _):
        taken = Config(listen=url.removeprefix("http://"))
        with (
            pytest.raises(ConfigError, match="cannot be listened on"),
            behind_a_proxy(taken),
        ):
            time.sleep(0)
