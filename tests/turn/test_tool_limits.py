"""Whether the recall tools may be added: asked of requests as a session reads them."""

import pytest
from msgspec.structs import replace

from ullage.core.turn.request import Envelopes, read
from ullage.core.turn.settings import Settings
from ullage.core.turn.tool_limits import with_tool_limits
from ullage.policy.stages.default import DEFAULT, SAFEGUARDS
from ullage.wires import ALL_FORMATS, FORMATS

MOST = FORMATS["openai-chat"].most_tools
SETTINGS = Settings(
    model="gpt-4.1",
    policy=DEFAULT,
    safeguards=SAFEGUARDS,
    formats=ALL_FORMATS,
)
OURS = len(SETTINGS.policy.toolset.tools)


def request_with(count):
    """A request with so many tools of the caller's own."""
    tools = [
        {"type": "function", "function": {"name": f"tool_{at}"}}
        for at in range(count)
    ]
    messages = [{"role": "user", "content": "Look."}]
    body = {"model": "gpt-4.1", "messages": messages, "tools": tools}
    return read(body, "gpt-4.1", None, ALL_FORMATS, Envelopes())


def limits_of(count, **settings):
    envelope = with_tool_limits(
        request_with(count), replace(SETTINGS, **settings)
    ).envelope
    return envelope.takes_tools, envelope.bars_tools


def test_ours_are_added_as_long_as_all_of_them_have_room():
    assert limits_of(MOST - OURS) == (True, "")
    assert limits_of(MOST - OURS + 1) == (False, "full")


@pytest.mark.parametrize("recall", ["auto", True, False])
def test_what_the_provider_refused_is_not_added_again(recall):
    limits = limits_of(1, recall=recall, may_add_tools=False)
    assert limits == (False, "refused")


def test_a_caller_who_asks_for_them_gets_them_also_where_they_have_no_room():
    assert limits_of(MOST, recall=True) == (True, "")


def test_a_host_that_has_them_is_not_limited():
    assert limits_of(MOST, recall="host", may_add_tools=False) == (True, "")
