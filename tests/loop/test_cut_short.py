"""A reply that ended at its output limit may lack half of a call: its calls are not run."""

import asyncio
import copy

import pytest

from tests.loop.replies import FORMAT_NAMES, reply, results
from tests.loop.test_streams import events_of
from tests.loop.test_turn import arun, is_legal, run

formats = pytest.mark.parametrize("format", FORMAT_NAMES)
REASONS = {
    "openai-chat": ("length", "content_filter"),
    "openai-responses": ("max_output_tokens", "content_filter"),
    "anthropic": ("max_tokens", "model_context_window_exceeded", "refusal"),
    "gemini": ("MAX_TOKENS", "SAFETY", "RECITATION"),
    "ollama": ("length",),
    "bedrock-converse": (
        "max_tokens",
        "guardrail_intervened",
        "malformed_tool_use",
    ),
}
EACH = [
    (format, reason)
    for format, reasons in REASONS.items()
    for reason in reasons
]


def ended(format, body, reason):
    """A reply that ended for this reason."""
    body = copy.deepcopy(body)
    if format == "openai-chat":
        body["choices"][0]["finish_reason"] = reason
    elif format == "openai-responses":
        body |= {
            "status": "incomplete",
            "incomplete_details": {"reason": reason},
        }
    elif format == "anthropic":
        body["stop_reason"] = reason
    elif format == "ollama":
        body["done_reason"] = reason
    elif format == "bedrock-converse":
        body["stopReason"] = reason
    else:
        body["candidates"][0]["finishReason"] = reason
    return body


class Disk:
    """A tool that writes files, and what was written."""

    def __init__(self):
        self.files = {}

    def write_file(self, path: str, text: str = "") -> str:
        """Write a file."""
        self.files[path] = text
        return f"wrote {len(text)} characters"


def script(format, reason):
    cut = ended(
        format, reply(format, "", [("write_file", {"path": "a"})], 1), reason
    )
    whole = reply(
        format, "", [("write_file", {"path": "a", "text": "all of it"})], 2
    )
    return [cut, whole, reply(format, "Done.")]


def check(format, outcome, disk, reason):
    """The call that was cut short was answered, and only the whole one was run."""
    assert disk.files == {"a": "all of it"}
    (first, failed), second = results(format, outcome.history)
    assert first.startswith(f"not run: the reply was cut short ({reason})")
    assert failed or format in ("openai-chat", "openai-responses", "ollama"), (
        "no flag there"
    )
    assert second[0] == "wrote 9 characters"
    assert (outcome.text, outcome.iterations) == ("Done.", 3)


@pytest.mark.parametrize(("format", "reason"), EACH)
@pytest.mark.parametrize("sdk", [False, True], ids=["dicts", "objects"])
def test_a_call_of_a_reply_that_was_cut_short_is_not_run(format, reason, sdk):
    disk = Disk()
    outcome, client, _ = run(
        format, *script(format, reason), sdk=sdk, tools=[disk.write_file]
    )
    check(format, outcome, disk, reason)
    assert is_legal(format, client.views)


@formats
def test_the_same_of_a_stream(format):
    disk, reason = Disk(), REASONS[format][0]
    streams = [
        iter(events_of(format, body)) for body in script(format, reason)
    ]
    outcome, _, _ = run(format, *streams, tools=[disk.write_file])
    check(format, outcome, disk, reason)


@formats
def test_the_same_in_an_event_loop(format):
    disk, reason = Disk(), REASONS[format][0]
    outcome, _, _ = asyncio.run(
        arun(format, *script(format, reason), tools=[disk.write_file])
    )
    check(format, outcome, disk, reason)


@formats
def test_none_of_several_calls_is_run_and_each_has_its_result(format):
    disk, calls = Disk(), [("write_file", {"path": name}) for name in "abc"]
    cut = ended(format, reply(format, "", calls, 1), REASONS[format][0])
    outcome, client, _ = run(
        format, cut, reply(format, "Done."), tools=[disk.write_file]
    )
    assert disk.files == {}
    assert len(results(format, outcome.history)) == 3
    assert is_legal(format, client.views)


@formats
def test_a_model_that_is_cut_short_again_and_again_comes_to_the_cap(format):
    disk = Disk()
    cut = script(format, REASONS[format][0])[0]
    outcome, client, _ = run(
        format, cut, tools=[disk.write_file], max_iterations=3
    )
    assert (outcome.why, len(client.views), disk.files) == (
        "iteration_cap",
        3,
        {},
    )


@formats
def test_a_text_that_was_cut_short_is_the_answer(format):
    outcome, _, _ = run(
        format, ended(format, reply(format, "It is"), REASONS[format][0])
    )
    assert (outcome.text, outcome.why) == ("It is", "answered")
