"""The contract of a format: our four wires keep it, and each broken promise fails its test."""

import pytest

from ullage.core.errors import FormatError
from ullage.testing import FormatContract, boundaries, example_runs, in_format
from ullage.testing.formats import NEW
from ullage.wires import FORMATS


def requests(name):
    return [
        in_format(run[: boundaries(run)[-2]], name)
        for run in example_runs(2, turns=4)
    ]


class TestOpenaiChat(FormatContract):
    format = FORMATS["openai-chat"]
    requests = requests("openai-chat")


class TestOpenaiResponses(FormatContract):
    format = FORMATS["openai-responses"]
    requests = requests("openai-responses")


class TestAnthropic(FormatContract):
    format = FORMATS["anthropic"]
    requests = requests("anthropic")


class TestGemini(FormatContract):
    format = FORMATS["gemini"]
    requests = requests("gemini")


class Broken:
    """A format of ours that breaks one promise, and is itself in all else."""

    def __init__(self, format, **broken):
        self._format, self._broken = format, broken

    def __getattr__(self, name):
        own = getattr(self._format, name)
        broken = self._broken.get(name)
        return (
            own
            if broken is None
            else lambda *given, **more: broken(own, *given, **more)
        )


def forgets(own, request, messages, tools):
    return own({"messages": request["messages"]}, messages, tools)


def copies(own, request, messages, tools):
    return own(request, [dict(message) for message in messages], tools)


def writes_through(own, raw, message, changes, **more):
    fresh = own(raw, message, changes, **more)
    raw.update(fresh)
    return fresh


def shows_nothing(own, raw, message, changes, **more):
    return own(raw, message, (), **more)


def reads_on(own, raw, where):
    raw.setdefault("seen", 0)
    raw["seen"] += 1
    return own(raw, where)


def answers_another(own, call, text, **more):
    return {**own(call, text, **more), "tool_call_id": "another"}


def takes_anything(own, raw, where):
    try:
        return own(raw, where)
    except FormatError:
        return own({"role": "user", "content": "?"}, where)


BROKEN = {
    "test_untouched_messages_are_the_callers_own": (
        {"compose": forgets},
        {"compose": copies},
    ),
    "test_every_leaf_of_text_can_be_shown_otherwise": (
        {"edit": writes_through},
        {"edit": shows_nothing},
    ),
    "test_reading_changes_nothing_and_gives_the_same_again": (
        {"parse": reads_on},
    ),
    "test_calls_and_their_results_agree": (
        {"result": answers_another},
        {"calls": lambda own, raw: own(raw)[1:]},
    ),
    "test_a_tool_keeps_its_name": (
        {"tool_name": lambda own, raw: own(raw).upper()},
    ),
    "test_a_user_message_says_what_it_was_given": (
        {"user": lambda own, text: own(text[1:])},
    ),
    "test_usage_is_read_or_none": ({"usage": lambda own, reply: reply},),
    "test_what_is_no_message_is_a_typed_error": ({"parse": takes_anything},),
}


@pytest.mark.parametrize(
    ("test", "broken"),
    [(test, one) for test, some in BROKEN.items() for one in some],
)
def test_a_format_that_breaks_its_word_fails_the_test_of_it(test, broken):
    class Proof(FormatContract):
        format = Broken(FORMATS["openai-chat"], **broken)
        requests = requests("openai-chat")

    with pytest.raises(AssertionError):
        getattr(Proof(), test)()


def test_requests_without_results_prove_nothing():
    class Proof(FormatContract):
        format = FORMATS["openai-chat"]
        requests = (
            {"model": "m", "messages": [{"role": "user", "content": NEW}]},
        )

    with pytest.raises(AssertionError, match="ToolCall"):
        Proof().test_there_is_something_to_prove_it_with()
