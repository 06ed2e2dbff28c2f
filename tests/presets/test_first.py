"""Each preset lives through a conversation in every format."""

import json

import pytest

from tests import histories
from ullage import ConfigError, Limits, Session, Usage, presets
from ullage.formats import FORMATS
from ullage.formats.rules import problems_of
from ullage.presets.continuation import ContinuationSettings
from ullage.presets.token_budget import TokenBudgetSettings, token_budget
from ullage.replay import reading

PRESETS = [name for name in presets.NAMES if name != "default"]
LONG = "a line of the transcript, and another\n" * 650


def turns():
    return [
        histories.Turn(
            user="Summarise." if n == 0 else None, calls=(histories.Call("read", "a.py", text),)
        )
        for n, text in enumerate((LONG, LONG + "2", "short", LONG + "3"))
    ]


def played(name, format):
    """A session that sent a request before each reply, with its newest view."""
    messages = histories.wire(format, turns())
    session = Session("", policy=name, format=format, limits=Limits(window_tokens=200_000))
    wire = FORMATS[format]
    speaks = [n for n, m in enumerate(messages) if m.get("role") in ("assistant", "model")]
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
    originals = [text for m in messages for _, found in reading.results(m) for text in found]
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
    assert json.loads(reading.ask(session, "get_continuation", {"tool_call_id": "x"}))["error"]


def test_token_budget_leaves_the_newest_batch(capsys):
    _, messages, view = played("token_budget", "anthropic")
    assert view[-1] is messages[-1]
    shown = [text for message in view for _, texts in reading.results(message) for text in texts]
    assert [text.endswith("[truncated for context management]") for text in shown] == [1, 1, 0, 0]
    told = capsys.readouterr().err
    assert "Note: Compacted 2 old tool result(s) — input tokens (6" in told
    assert "exceeded budget (40,000)" in told


def test_settings_are_read_under_the_documents_keys(tmp_path):
    file = tmp_path / "settings.toml"
    file.write_text("InputTokenBudget = 10\nToolResultRetentionChars = 20\n")
    read = TokenBudgetSettings(input_token_budget=10, tool_result_retention_chars=20)
    loaded = presets.load("token_budget", file)
    assert loaded.diagnostic == token_budget(read).diagnostic
    assert "budget (10)" in loaded.diagnostic
    with pytest.raises(ConfigError, match="InputTokenBudget"):
        presets.load("token_budget", {"InputTokenBudget": -1})
    with pytest.raises(ConfigError, match="under 1"):
        ContinuationSettings(MAX_TOOL_RESULT_CHARS=0)
    with pytest.raises(ConfigError, match="The keys are InputTokenBudget"):
        presets.load("token_budget", {"Budget": 1})
