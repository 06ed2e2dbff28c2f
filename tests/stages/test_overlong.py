"""Which texts are cut because a provider takes no text as long, and what is shown of them."""

import pytest

from tests import histories
from tests.histories import MODEL, Call, Turn
from ullage import Session, problems
from ullage.core.values.limits import TextLimit
from ullage.policy.stages.overlong import overlong
from ullage.wires import FORMATS

every = pytest.mark.parametrize("format", tuple(FORMATS))
LIMIT = TextLimit(4_000)
LOG = "all is well\n" * 600
QUESTION = "Why is this so? " * 400


def window(format, *turns):
    """The window of a conversation in which nothing is cut at first sight."""
    session = Session(MODEL[format], format=format, recall=False)
    session.fit(histories.request(format, histories.wire(format, list(turns))))
    return session.window


def cuts(format, *turns, limit=LIMIT):
    return overlong(window(format, *turns), limit)


@every
def test_only_what_is_over_the_limit_is_cut(format):
    turns = (
        Turn(calls=(Call("bash", "a", LOG), Call("bash", "b", "short\n"))),
        Turn(user=QUESTION),
    )
    kinds = [cut.edit.kind for cut in cuts(format, *turns)]
    assert sorted(kinds) == ["cut", "truncated"]
    for cut in cuts(format, *turns):
        assert 2_000 < len(cut.edit.text) <= LIMIT.most
        assert cut.outputs[0].text in (LOG, QUESTION)
        assert cut.edit.ref == cut.outputs[0].ref


def test_a_result_is_cut_as_at_first_sight():
    (cut,) = cuts("openai-chat", Turn(calls=(Call("bash", "a", LOG),)))
    assert cut.edit.text.startswith("all is well\n")
    assert cut.edit.text.endswith("from character 1,188]")
    assert f"ref={cut.edit.ref}" in cut.edit.text


def test_arguments_over_the_limit_are_a_stub():
    writes = Turn(calls=(Call("write_file", "x" * 9_000, "written\n"),))
    (cut,) = cuts("openai-chat", writes)
    assert cut.edit.address.kind == "call"
    assert cut.edit.text.startswith('{"_ullage":')


@pytest.mark.parametrize(("unit", "count"), [("characters", 0), ("bytes", 1)])
def test_a_limit_is_one_of_characters_or_of_bytes(unit, count):
    said = Turn(user="é" * 3_000)
    found = cuts("openai-chat", said, limit=TextLimit(4_000, unit))
    assert len(found) == count
    assert all(len(cut.edit.text.encode()) <= 4_000 for cut in found)


def test_a_limit_too_small_for_an_excerpt_leaves_the_ref():
    (cut,) = cuts(
        "openai-chat",
        Turn(calls=(Call("bash", "a", "z" * 9_000),)),
        limit=TextLimit(90),
    )
    assert len(cut.edit.text) <= 90
    assert cut.edit.ref in cut.edit.text


def test_bound_reasoning_goes_with_a_text_that_is_cut_before_it():
    turns = [
        Turn(calls=(Call("bash", "a", LOG),), thought=True),
        Turn(said="So.", thought=True),
    ]
    turns.append(Turn(user="And now?"))
    session = Session(MODEL["anthropic"], format="anthropic", recall=False)
    asked = histories.request("anthropic", histories.wire("anthropic", turns))
    session.fit(asked)
    said = (
        "messages.2.content.0.text: String should have at most 4000 characters"
    )
    assert session.refused(said)
    view = session.fit(asked)
    assert problems(view, "anthropic") == []
    assert "truncated" in [event.kind for event in view.events]
