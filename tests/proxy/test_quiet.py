"""Standard error holds words of ours alone."""

import asyncio
import logging
import threading

import pytest

from tests.proxy.started import started
from tests.proxy.test_fitting import long_chat
from tests.proxy.upstream import ask, upstream
from ullage.core.errors import ConfigError
from ullage.doors.proxy import quiet
from ullage.doors.proxy.config import Config
from ullage.doors.proxy.quiet import OwnWords, described, own_words, quiet_loop


@pytest.fixture
def lines(capsys):
    """What was written for what is logged within."""
    handler = OwnWords()

    def written(logger, level, message, *args, **fields):
        record = logging.LogRecord(
            logger, level, "", 0, message, args, fields.get("exc_info")
        )
        handler.handle(record)
        return capsys.readouterr().err

    return written


def failed():
    try:
        raise ValueError("SECRET")
    except ValueError as error:
        return error


def test_another_librarys_words_are_left_out(lines):
    error = failed()
    met = (type(error), error, error.__traceback__)
    assert (
        lines("aiohttp.server", 40, "SECRET %s", "x")
        == "ullage: error of aiohttp.server\n"
    )
    said = lines("aiohttp.server", 40, "SECRET", exc_info=met)
    assert said == "ullage: error of aiohttp.server: ValueError\n"


def test_a_kind_of_event_is_written_once(lines):
    first = lines(
        "ullage",
        30,
        "%s: %s: %s%s",
        "unknown_model",
        "model",
        "no 'SECRET'",
        "",
    )
    assert first.startswith("ullage: event 'unknown_model'")
    assert "SECRET" not in first
    assert (
        lines(
            "ullage",
            30,
            "%s: %s: %s%s",
            "unknown_model",
            "model",
            "no 'OTHER'",
            "",
        )
        == ""
    )


def test_an_agents_terminal_shows_no_event(capsys):
    record = logging.LogRecord(
        "ullage", 30, "", 0, "%s: %s: %s%s", ("cut", "a", "b", ""), None
    )
    OwnWords(tells_events=False).handle(record)
    assert capsys.readouterr().err == ""


def test_our_own_are_written_as_they_are(lines):
    assert lines("ullage.proxy", 40, "a request failed: %s", "ValueError") == (
        "ullage: a request failed: ValueError\n"
    )


def test_an_exception_is_its_type_and_its_place_in_our_code():
    assert described(failed()) == "ValueError"
    with pytest.raises(ConfigError) as raised:
        Config(workers=0)
    assert described(raised.value).startswith("ConfigError in config.py:")
    assert described(None) == "unknown"


def test_threads_tasks_and_loggers_of_a_process_say_no_more(
    capsys, monkeypatch
):
    def fail():
        raise ValueError("SECRET")

    async def loop_with_a_failure():
        quiet_loop(asyncio.get_running_loop())
        asyncio.get_running_loop().call_soon(fail)
        await asyncio.sleep(0)

    monkeypatch.setattr(logging.root, "handlers", [])
    monkeypatch.setattr(quiet, "_log", logging.getLogger("ullage.proxy"))
    before = logging.lastResort, threading.excepthook
    with own_words():
        thread = threading.Thread(target=fail)
        thread.start()
        thread.join()
        asyncio.run(loop_with_a_failure())
        logging.getLogger("somebody.else").error("SECRET")
    assert (logging.lastResort, threading.excepthook) == before
    told = capsys.readouterr().err
    assert "SECRET" not in told
    assert told.splitlines() == [
        "ullage: a thread failed: ValueError",
        "ullage: a task failed: ValueError",
        "ullage: error of somebody.else",
    ]


def test_a_process_writes_nothing_of_what_it_was_sent(tmp_path):
    asked = long_chat().replace(b'"gpt-4.1"', b'"SECRETMODEL"')
    with (
        upstream() as there,
        started(there, f"--store={tmp_path}/kept.db", "--log") as running,
    ):
        for body in (
            asked,
            b'{"model": {"SECRET": 1}, "messages": [{"role": "SECRET"}]}',
        ):
            assert (
                ask(running.url, "POST", "/v1/chat/completions", body)[0]
                == 200
            )
        running.process.terminate()
        told = running.process.stderr.read()
    assert "SECRET" not in told
    assert '"model":"unknown"' in told
