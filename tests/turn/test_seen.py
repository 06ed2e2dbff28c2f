"""What of a request has a say and stands in no history is kept at its place; nothing else is."""

import pytest

from tests import histories
from ullage import Session
from ullage.core.history.ledger import Ledger, PolicyRecord, RequestRecord
from ullage.core.turn.active_policy import ActivePolicy, PolicyResolution
from ullage.core.turn.caches import SessionCache
from ullage.core.turn.request import read
from ullage.core.turn.seen import with_request
from ullage.wires import ALL_FORMATS

TOOLS = [{"name": "read", "input_schema": {"type": "object"}}]
NONE, ONE = {"type": "none"}, {"type": "tool", "name": "read"}


def kept(choice, *, tools=TOOLS, recall=True, ledger=None):
    """What is kept of a request with a choice of tools."""
    messages = histories.wire("anthropic", [])
    more = {} if choice is None else {"tool_choice": choice}
    given = histories.request("anthropic", messages, tools=tools, **more)
    cache = SessionCache()
    request = read(
        given, "claude-sonnet-4-5", None, ALL_FORMATS, cache.envelopes
    )
    line = cache.match_history(request, "")
    resolution = PolicyResolution(
        ActivePolicy(PolicyRecord("default", recall=recall)),
        ledger or Ledger(),
    )
    after = with_request(
        resolution, line, request, Session("claude-sonnet-4-5").settings
    )
    key = line.transcript.decision_key(len(line.transcript))
    assert len(after.records) == len(after.ledger.at(key).seen) - len(
        resolution.ledger.at(key).seen
    )
    return after, resolution, key


@pytest.mark.parametrize("choice", [NONE, ONE])
def test_where_recall_may_not_be_called_that_is_kept(choice):
    after, _, key = kept(choice)
    assert after.ledger.at(key).seen == (RequestRecord(unrecalled=True),)
    again, before, _ = kept(choice, ledger=after.ledger)
    assert again is before, "once"


@pytest.mark.parametrize(
    "of",
    [
        {"choice": None},
        {"choice": {"type": "auto"}},
        {"choice": NONE, "tools": []},
        {"choice": ONE, "recall": False},
    ],
)
def test_of_any_other_request_nothing_is_kept(of):
    after, before, _ = kept(**of)
    assert after is before
