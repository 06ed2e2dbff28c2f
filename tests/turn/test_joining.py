"""When a conversation that waits is joined: what it carried in vain against what it costs."""

import re
from itertools import pairwise

import pytest

from tests import histories
from tests.histories import Call, Turn
from tests.session.test_joining import UNBOUND, request, session_for, steps
from tests.session.test_joining_wires import KEYS, names
from ullage.core.history import canon
from ullage.core.history.transcript import Transcript
from ullage.core.turn.joining import TIMES, is_under_way
from ullage.wires import FORMATS

NUMBERS = re.compile(
    r"takes out ([\d,]+) characters and has ([\d,]+) cached again; "
    r"carrying it cost as much as ([\d,]+) cached characters in [\d,]+ requests, "
    r"the batch costs ([\d,]+)"
)


def transcript_of(format, turns):
    wire, made = FORMATS[format], Transcript(canon.root(format, ""))
    for at, raw in enumerate(histories.wire(format, turns)):
        message = wire.parse(raw, f"[{at}]")
        made.append(message, canon.digest_of(message))
    return made


@pytest.mark.parametrize("format", KEYS)
def test_a_model_worked_where_it_called_something_or_thought(format):
    assert not is_under_way(transcript_of(format, []))
    assert not is_under_way(
        transcript_of(format, [Turn(said="Hello."), Turn(said="Yes?")])
    )
    called = Turn(calls=(Call("bash", "a.py", "done"),))
    assert is_under_way(transcript_of(format, [Turn(said="Hello."), called]))


def test_thinking_that_is_bound_is_no_greeting():
    assert is_under_way(
        transcript_of("anthropic", [Turn(said="Hello.", thought=True)])
    )


@pytest.mark.parametrize("tool", ["bash", "fetch", "grep"])
def test_it_is_joined_by_the_first_request_at_which_the_rent_is_the_price(
    tool,
):
    session, turns = session_for("anthropic"), steps(40, tool=tool)
    rents = []
    for count in range(2, 41):
        view = session.fit(request("anthropic", turns[:count]))
        told = view.explain() if view.sent.standing else session.events[-1].why
        event = next(
            (each for each in view.events if each.kind == "joined"), None
        )
        found = NUMBERS.search(told) or NUMBERS.search(event.why)
        freed, left, rent, price = (
            int(each.replace(",", "")) for each in found.groups()
        )
        assert price == pytest.approx(TIMES * left, abs=1)
        rents.append((freed, rent))
        assert (rent >= price) == ("get_continuation" in names(view))
        if rent >= price:
            break
    assert rent >= price
    carried = [rent for _, rent in rents]
    assert carried == sorted(carried)
    assert all(
        after - before == freed
        for (_, before), (freed, after) in pairwise(rents)
    )


@pytest.mark.parametrize("format", KEYS)
def test_what_was_never_carried_is_not_waited_for(format):
    """Twenty requests were sent before anybody looked: what they carried is enough."""
    view = session_for(format).fit(request(format, steps(20)))
    assert "get_continuation" in names(view)
    assert UNBOUND[format] in view.sent.summary
