"""Each preset lives through a conversation in every format."""

import json

import pytest

from lab import reading
from tests import histories
from ullage import Limits, Session, Usage, documents
from ullage.wires import FORMATS
from ullage.wires.rules.checker import problems_of

PRESETS = [name for name in documents.NAMES if name != "default"]
LONG = "a line of the transcript, and another\n" * 650


def turns():
    return [
        histories.Turn(
            user="Summarise." if n == 0 else None,
            calls=(histories.Call("read", "a.py", text),),
        )
        for n, text in enumerate((LONG, LONG + "2", "short", LONG + "3"))
    ]


def played(name, format):
    """A session that sent a request before each reply, with its newest view."""
    messages = histories.wire(format, turns())
    limits = Limits(window_tokens=200_000)
    session = Session(
        "", policy=name, format=format, limits=limits, recall=True
    )
    wire = FORMATS[format]
    speaks = [
        n
        for n, m in enumerate(messages)
        if m.get("role") in ("assistant", "model")
    ]
    for length in [*speaks, len(messages)]:
        view = session.fit(histories.request(format, messages[:length]))
        session.observe(Usage(fresh_tokens=session.window.tokens * 5))
    return session, messages, wire.history(view)


@pytest.mark.parametrize("format", sorted(FORMATS))
@pytest.mark.parametrize("name", PRESETS)
def test_views_are_legal_and_lose_nothing(name, format):
    session, messages, view = played(name, format)
    assert not problems_of(format, view)
    texts, opened = list(reading.visible(view)), {}
    reading.reachable(session, texts, opened)
    originals = [
        text
        for m in messages
        for _, found in reading.results(m)
        for text in found
    ]
    assert len(originals) == 4
    assert all(text in texts or text in opened.values() for text in originals)


def _first_result(messages):
    found = ((at, m) for at, m in enumerate(messages) if m["role"] == "tool")
    at, message = next(found)
    return at, message["tool_call_id"]


def test_continuation_pages_to_the_end_by_call_id():
    session, _, view = played("continuation", "openai-chat")
    at, call_id = _first_result(view)
    last = view[at]["content"].splitlines()[-1]
    assert last == (
        f"[truncated — showing 4000/{len(LONG)} chars. Call get_continuation with "
        f'tool_call_id="{call_id}" to read more]'
    )
    page = reading.ask(session, "get_continuation", {"tool_call_id": call_id})
    assert page.startswith(LONG[4_000:8_000])
    assert "showing 4000-8000/" in page
    assert json.loads(
        reading.ask(session, "get_continuation", {"tool_call_id": "x"})
    )["error"]
