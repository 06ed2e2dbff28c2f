"""A window is begun for a request: its limits, what is outside its messages, its tools."""

import pytest

from ullage import Limits, Session
from ullage.core.history.ledger import PolicyRecord
from ullage.core.turn.beginning import begin
from ullage.core.turn.memo import Memo
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
    memo = Memo()
    asked = read(
        REQUEST, "gpt-4.1", FORMATS["openai-chat"], ALL_FORMATS, memo.envelopes
    )
    line = memo.follow(asked, "")
    begun = begin(
        line, PolicyRecord("default", recall=recall), asked, settings, memo, 0
    )
    bare = begin(line, PolicyRecord("default", recall=False), asked, settings, memo, 0)
    assert (bool(begun.tools), begun.offers) == (added, added)
    assert (begun.builder.window.head_tokens > bare.builder.window.head_tokens) is added
    assert begun.builder.window.context_tokens == 10_000
