"""A window is begun for a request: its limits, what is outside its messages, its tools."""

import pytest

from ullage import Limits, Session
from ullage.core.history.ledger import PolicyRecord
from ullage.core.turn.beginning import prepare_window
from ullage.core.turn.caches import SessionCache
from ullage.core.turn.request import read
from ullage.wires import ALL_FORMATS, FORMATS

TOOL = {
    "type": "function",
    "function": {"name": "bash", "parameters": {"type": "object"}},
}
REQUEST = {
    "model": "gpt-4.1",
    "messages": [{"role": "user", "content": "Go."}],
    "tools": [TOOL],
}


@pytest.mark.parametrize(("recall", "added"), [(True, True), (False, False)])
def test_the_head_counts_the_tools_that_are_added(recall, added):
    settings = Session("gpt-4.1", limits=Limits(window_tokens=10_000)).settings
    cache = SessionCache()
    request = read(
        REQUEST,
        "gpt-4.1",
        FORMATS["openai-chat"],
        ALL_FORMATS,
        cache.envelopes,
    )
    line = cache.match_history(request, "")
    prepared = prepare_window(
        line,
        PolicyRecord("default", recall=recall),
        request,
        settings,
        cache,
        0,
    )
    bare = prepare_window(
        line,
        PolicyRecord("default", recall=False),
        request,
        settings,
        cache,
        0,
    )
    assert (bool(prepared.tools), prepared.offers) == (added, added)
    assert (
        prepared.builder.window.head_tokens > bare.builder.window.head_tokens
    ) is added
    assert prepared.builder.window.context_tokens == 10_000
