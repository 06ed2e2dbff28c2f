"""Stages go by who wrote a text and who reads it: each on a window of its own."""

import base64
import json

import pytest

from tests import histories
from tests.histories import Call, Turn
from ullage import Limits, Session
from ullage.core.tokens.meter import Meter
from ullage.documents.services import window_of
from ullage.policy import Policy, ProposedEdit, Replace, placeholder
from ullage.policy.stages.carrying_cost import shown_chars, winnable_chars
from ullage.policy.stages.media import refused_media
from ullage.policy.stages.names import dialogue_names
from ullage.policy.stages.placeholders import bare_placeholder, head_and_marker
from ullage.policy.stages.pressure import newest_rough, output_tokens
from ullage.policy.stages.record import steps
from ullage.policy.stages.rough import shown_tokens
from ullage.policy.stages.shrink import Tier, shrink
from ullage.wires import FORMATS

CALLER = {"type": "code_execution_20260120", "tool_id": "srvtoolu_1"}
TABLE = "row_one_of_many,2,3\n" * 500
WIDE = base64.b64encode(
    b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"
    + (9_000).to_bytes(4, "big") * 2
    + b"\x08\x02\x00\x00\x00"
).decode()


def window(tool="query", content=TABLE, **call):
    """The window of one call and its result."""
    use = {
        "type": "tool_use",
        "id": "toolu_1",
        "name": tool,
        "input": {"q": "which? " * 90},
    }
    result = {
        "type": "tool_result",
        "tool_use_id": "toolu_1",
        "content": content,
    }
    messages = [
        {"role": "user", "content": "Begin."},
        {"role": "assistant", "content": [{**use, **call}]},
        {"role": "user", "content": [result]},
    ]
    builder = window_of(
        messages, FORMATS["anthropic"], meter=Meter("claude-sonnet-4-5")
    )
    builder.limit(100_000, 100_000)
    return builder.window


def programs(**more):
    return window(caller=CALLER, **more)


PLAIN = window()
"""A result that a tool wrote for the model."""
ANSWER = window("ask_user")
PROGRAM = programs()
RESULT = (2, 0, 0)


@pytest.mark.parametrize("index", [1, 2])
def test_what_a_program_reads_costs_nothing_by_any_measure(index):
    empty = programs(content="")
    assert PROGRAM.message_bound(index) < 80 < 150 < PLAIN.message_bound(index)
    assert PROGRAM.count_message(index) < 80 < 150 < PLAIN.count_message(index)
    assert shown_tokens(PROGRAM, index) < 20 < shown_tokens(PLAIN, index)
    assert (
        shown_chars(PROGRAM, index, index + 1)
        == 0
        < shown_chars(PLAIN, index, index + 1)
    )
    assert (
        winnable_chars(PROGRAM, index, index + 1)
        == 0
        < winnable_chars(PLAIN, index, index + 1)
    )
    assert PROGRAM.count_message(index) == empty.count_message(index)
    assert newest_rough(PROGRAM, tokens=60) == (0, 0)
    assert newest_rough(PLAIN, tokens=60) == (2, 1)


def test_outputs_that_may_go_are_those_of_tools_for_the_model():
    assert PLAIN.total(output_tokens) > 1_000
    assert ANSWER.total(output_tokens) == PROGRAM.total(output_tokens) == 0
    assert winnable_chars(ANSWER, 2, 3) == 0
    assert list(PLAIN.results(0, 3)) == [RESULT]
    assert list(ANSWER.results(0, 3)) == list(PROGRAM.results(0, 3)) == []


def test_no_placeholder_takes_their_place():
    """Neither ours nor a document's, of a result or of the arguments."""
    shows = [
        placeholder,
        lambda window, at: bare_placeholder(window, at, words="gone {ref}"),
        lambda window, at: head_and_marker(
            window, at, retain_chars=9, marker="…", why="old"
        ),
    ]
    for show in shows:
        assert show(PLAIN, RESULT) is not None
        assert show(ANSWER, RESULT) is show(PROGRAM, RESULT) is None
    assert placeholder(PLAIN, (1, 0, 0)) is not None
    assert placeholder(PROGRAM, (1, 0, 0)) is None


def test_no_edit_of_a_programs_result_takes_effect():
    """Whoever decided it: an older version's ledger may hold one."""
    for given, takes_effect in ((PLAIN, True), (PROGRAM, False)):
        output = given.transcript.output(RESULT)
        edit = Replace(
            given.transcript.address(RESULT),
            output.ref,
            "[]",
            "pruned",
            "it was old",
        )
        assert (given.location_for(edit, 3) is not None) is takes_effect


def cuts_the_table(window, /):
    spots = [
        (at, 0, 0)
        for at in range(window.size)
        if window.transcript.messages[at].results
    ]
    cuts = []
    for spot in spots:
        output = window.transcript.output(spot)
        edit = Replace(
            window.transcript.address(spot), output.ref, "[]", "pruned", "mine"
        )
        cuts.append(ProposedEdit(edit, (output,)))
    return cuts


def test_nothing_is_recorded_of_a_cut_that_may_not_be_made():
    """Else each turn would try it again, and tell of it."""
    session = Session(
        "claude-sonnet-4-5",
        policy=Policy(name="mine-1", under_pressure=(cuts_the_table,)),
        format="anthropic",
        recall=True,
    )
    use = {
        "type": "tool_use",
        "id": "toolu_1",
        "name": "q",
        "input": {},
        "caller": CALLER,
    }
    result = {
        "type": "tool_result",
        "tool_use_id": "toolu_1",
        "content": TABLE,
    }
    messages = [
        {"role": "user", "content": "Begin."},
        {"role": "assistant", "content": [use]},
        {"role": "user", "content": [result]},
    ]
    session.fit(histories.request("anthropic", messages))
    assert "pruned" not in [event.kind for event in session.events]
    assert not any(
        entry.batches for entry in session.state.ledger.entries.values()
    )


def test_media_for_a_program_are_no_concern_of_the_providers_limits():
    block = {
        "type": "image",
        "source": {"type": "base64", "media_type": "image/png", "data": WIDE},
    }
    assert refused_media(window(content=[block]))
    assert not refused_media(programs(content=[block]))


def test_a_record_shows_nothing_of_what_the_model_never_saw():
    (_, step) = steps(PROGRAM, 0, 3, {})
    assert step.endswith(f"ref={PROGRAM.transcript.output(RESULT).ref}")
    assert (
        f"{len(TABLE):,} characters for the program that made the call" in step
    )
    assert "row_one" not in step
    assert "row_one" in "\n".join(steps(PLAIN, 0, 3, {}))


def test_names_in_an_answer_count_as_said():
    assert "row_one_of_many" in dialogue_names(ANSWER)
    assert "row_one_of_many" not in dialogue_names(PLAIN) | dialogue_names(
        PROGRAM
    )


def test_the_newest_answer_is_cut_after_an_older_one():
    """As the newest user message is; and both after what tools gave."""
    pasted = "a line that the user pasted\n" * 90
    turns = [
        Turn(calls=(Call("ask_user", "one", f"first {pasted}"),)),
        Turn(calls=(Call("ask_user", "two", f"second {pasted}"),)),
        Turn(calls=(Call("bash", "make", f"third {pasted}"),)),
        Turn(said="Hm.", calls=(Call("bash", "make", f"fourth {pasted}"),)),
    ]
    messages = histories.wire("openai-chat", turns)
    builder = window_of(messages, FORMATS["openai-chat"])
    builder.limit(100_000, 100_000)
    given = builder.window
    gone = []
    for tier in (Tier.OPEN, Tier.SAID, Tier.TASK):
        cuts, _ = shrink(given, range(given.size), [tier], 10**6)
        spots = [given.transcript.locate(cut.edit.address) for cut in cuts]
        gone.append(
            [given.transcript.leaf(spot).text.split()[0] for spot in spots]
        )
    assert gone == [["third"], ["first"], ["second"]]


def test_a_secret_in_the_reason_of_an_approval_is_in_no_account():
    given = {
        "type": "mcp_approval_response",
        "approval_request_id": "mcpr_1",
        "approve": False,
        "reason": "It shows sk-live-77.",
    }
    builder = window_of(
        [given],
        FORMATS["openai-responses"],
        redact=lambda text: text.replace("sk-live-77", "[secret]"),
    )
    assert (
        builder.window.transcript.user_words(0, 0)
        == "not approved: It shows [secret]."
    )
    assert json.loads(builder.window.transcript.leaf((0, 0, 0)).text)[
        "reason"
    ].endswith("[secret].")


def test_limits_are_those_of_a_session_too():
    """A table larger than the window is no reason to refuse the request."""
    limits = Limits(window_tokens=3_000, output_reserve_tokens=500)
    session = Session("claude-sonnet-4-5", format="anthropic", limits=limits)
    use = {
        "type": "tool_use",
        "id": "toolu_1",
        "name": "q",
        "input": {},
        "caller": CALLER,
    }
    result = {
        "type": "tool_result",
        "tool_use_id": "toolu_1",
        "content": TABLE * 9,
    }
    messages = [
        {"role": "user", "content": "Begin."},
        {"role": "assistant", "content": [use]},
        {"role": "user", "content": [result]},
    ]
    view = session.fit(
        histories.request("anthropic", messages, max_tokens=500)
    )
    assert view["messages"] == messages
