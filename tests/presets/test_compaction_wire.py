"""Compaction of the output-cache document on the wire: what the real SDKs send and are told."""

import anthropic
import openai
import pytest

from tests import histories
from tests.histories import Call, Turn
from tests.servers import Call as Asks
from tests.servers import Reply as Says
from tests.servers.loops import loop
from tests.servers.replies import MODELS
from ullage import Limits, Session, summarise
from ullage.core.values.effects import Reply
from ullage.documents.presets.output_cache import (
    CompactionConfig,
    TokenUsage,
    ToolOutputCacheConfig,
    output_cache,
    prompt_of,
)
from ullage.policy.stages.account import flatten
from ullage.wires.rules.checker import problems_of

LIMITS = Limits(window_tokens=12_000, output_reserve_tokens=1_000)
TAGGED = "<retain>ref=abc is the trace</retain><summary>The loader was read.</summary>"


def settings(**config):
    return output_cache(
        ToolOutputCacheConfig(compaction=CompactionConfig(**config))
    )


@pytest.mark.says(
    "output-cache-and-compaction",
    "2.2 Configuration (CompactionConfig)",
    """export type CompactionConfig = {
  enabled?: boolean;         // default true
auto?: boolean; // default true (if false, suppress automatic compaction)
  thresholdRatio?: number;   // default 0.8
model?: string | null; // optional: model to use for summarization
summaryPrompt?: string; // default: Compliant with Python version (<summary> tag)
summaryDirectives?: string[]; // optional: Additional instructions when summarizing (append)
retainPrompt?: string | null; // optional: retain instruction (<retain> tag)
retainDirectives?: string[]; // optional: retain append
retainLastTurns?: number; // default 1 (retains the last N turns)
""",
    lives="ullage.documents.presets.output_cache.CompactionConfig",
)
@pytest.mark.says(
    "output-cache-and-compaction",
    "2.6.3 summaryDirectives (additional instructions)",
    'It is assumed that it will be used to "add instructions to leave important information" '
    "without replacing the existing prompt.",
)
def test_its_keys_their_defaults_and_what_directives_leave_standing():
    keys = CompactionConfig.__struct_encode_fields__
    given = {
        key: getattr(CompactionConfig(), name)
        for key, name in zip(keys, _names(), strict=True)
    }
    assert given == {
        "enabled": True,
        "auto": True,
        "thresholdRatio": 0.8,
        "model": None,
        "summaryPrompt": None,
        "summaryDirectives": (),
        "retainPrompt": None,
        "retainDirectives": (),
        "retainLastTurns": 1,
    }
    plain = prompt_of(CompactionConfig()).closing
    assert "<summary>" in plain
    added = prompt_of(
        CompactionConfig(summary_directives=("Name every port.",))
    ).closing
    assert added == f"{plain}\n- Name every port."


def _names():
    return CompactionConfig.__struct_fields__


@pytest.mark.says(
    "output-cache-and-compaction",
    "2.3 Token Usage",
    """export type TokenUsage = {
  input_tokens: number;
  output_tokens: number;
  cache_creation_tokens: number;
  cache_read_tokens: number;
  total_tokens: number; // computed
""",
    lives="ullage.documents.presets.output_cache.TokenUsage",
)
def test_the_total_is_computed_and_cannot_be_given():
    assert TokenUsage.__struct_fields__ == (
        "input_tokens",
        "output_tokens",
        "cache_creation_tokens",
        "cache_read_tokens",
    )
    made = TokenUsage(
        input_tokens=1,
        output_tokens=2,
        cache_creation_tokens=4,
        cache_read_tokens=8,
    )
    assert made.total_tokens == 15
    with pytest.raises(TypeError):
        TokenUsage(total_tokens=15)


# ── the fourth checkpoint: a request for a summary that ends in open calls ───────────────

OPEN = [
    Turn(calls=(Call("bash", "ls", "a.py"),)),
    Turn(said="I look.", calls=(Call("bash", "cat", "x"),)),
]
INTERRUPT = "Sum up, between <summary> and </summary>."
REFUSED = {
    "openai-chat": openai.BadRequestError,
    "openai-responses": openai.BadRequestError,
    "anthropic": anthropic.BadRequestError,
}


@pytest.mark.says(
    "output-cache-and-compaction",
    "2.6.1 Formatting for summaries (important)",
    "In the Python version, if you include “the state in which the trailing assistant has "
    "tool_calls” in the summary, the tool/result correspondence will break and an API error will "
    "occur, so remove the trailing assistant tool_calls.",
    lives="ullage.policy.stages.account.flatten",
)
@pytest.mark.says(
    "output-cache-and-compaction",
    "3. Checkpoints to implement while learning",
    "It is possible to reproduce in a test the phenomenon that the tool_calls of assistant at the "
    "end are not removed or it breaks.",
)
@pytest.mark.parametrize("format", sorted(REFUSED))
def test_open_calls_left_in_the_request_are_the_providers_error_and_removed_they_are_none(
    format, serve
):
    server = serve(format, [TAGGED], strict=True)
    client, messages = server.client(), histories.wire(format, OPEN)[:-1]
    named = {"model": MODELS[format]}
    asked = histories.request(
        format, [*messages, histories.user(format, INTERRUPT)], **named
    )
    with pytest.raises(REFUSED[format]) as told:
        server.ask(client, asked)
    assert told.value.status_code == 400
    session = Session(histories.MODEL[format], format=format)
    session.fit(histories.request(format, messages))
    transcript = session.window.transcript
    text = "".join(flatten(transcript, 0, len(transcript)))
    assert text.endswith("[assistant]\nI look.\n")
    formatted = [
        histories.user(format, text),
        histories.user(format, INTERRUPT),
    ]
    server.ask(client, histories.request(format, formatted, **named))
    assert len(server.requests) == 2


# ── in a conversation ────────────────────────────────────────────────────────────────────


class Writer:
    def __init__(self):
        self.asked = []

    def __call__(self, asked):
        self.asked.append(asked)
        return Reply(text=TAGGED)


@pytest.mark.says(
    "output-cache-and-compaction",
    "2.7.1 Rebuilding the provider-specific history cache",
    "In implementations with provider-specific history buffers, such as OpenAI, after compaction "
    'Rebuild the "history cache used for sending" from `compactedMessages`.',
    lives="ullage.Session",
)
@pytest.mark.says(
    "output-cache-and-compaction",
    "2.7.1 Rebuilding the provider-specific history cache",
    "`inputItems` of OpenAIHistoryAdapter converts `compactedMessages` back",
)
@pytest.mark.says(
    "output-cache-and-compaction",
    "2.7.1 Rebuilding the provider-specific history cache",
    "Previous provider output items are not consistent with the summarized history and are "
    "therefore discarded.",
)
@pytest.mark.says(
    "output-cache-and-compaction",
    "2.7 checkAndCompact (History replacement)",
    "If compaction is triggered:",
)
@pytest.mark.says(
    "output-cache-and-compaction",
    "2.1 Purpose",
    "Replace long conversations/many tool calls with “summary” so you can continue working",
)
@pytest.mark.says(
    "output-cache-and-compaction",
    "2.1 Purpose",
    "Automatically before crossing the model's context window",
)
def test_a_responses_conversation_is_rebuilt_from_the_summary_and_goes_on(
    serve,
):
    steps = [
        Says("", [Asks("read_file", {"path": f"{n}"})], thought="Hm. " * 30)
        for n in range(60)
    ]
    server = serve(
        "openai-responses", [*steps, "Done."], strict=True, limit_tokens=11_000
    )
    writer = Writer()
    session = Session(
        "gpt-5.6", policy=settings(), limits=LIMITS, summariser=writer
    )
    history = loop(
        server,
        session,
        lambda name, arguments: "what it found\n" * 60,
        turns=80,
    )
    assert (
        len(server.requests) == 61
    )  # nobody was refused, and the model could go on
    compactions = [
        event for event in session.events if event.kind == "compacted"
    ]
    assert len(compactions) == len(writer.asked) > 1
    sent = [request.body["input"] for request in server.requests]
    shorter = [
        n for n in range(1, len(sent)) if len(sent[n]) < len(sent[n - 1])
    ]
    assert len(shorter) == len(compactions)
    for n in shorter:
        before = {item["id"] for item in sent[n - 1] if "id" in item}
        after = {item["id"] for item in sent[n] if "id" in item}
        assert len(after & before) < len(before) / 2
        task, retain, summary = sent[n][:3]
        assert task == history[0]
        assert "ref=abc is the trace" in str(retain["content"])
        assert "The loader was read." in str(summary["content"])
        assert not problems_of("openai-responses", sent[n])


@pytest.mark.says(
    "output-cache-and-compaction",
    "2.6.2 Preference for compaction.model",
    "When generating a summary, `CompactionConfig.model` is given priority and LLM is selected.",
    lives="ullage.session.summarise.Summariser.model_for",
)
@pytest.mark.parametrize(
    ("model", "asked"), [("gpt-5-mini", "gpt-5-mini"), (None, "gpt-4.1-nano")]
)
def test_the_model_of_the_settings_goes_before_the_summarisers_own(
    model, asked, serve
):
    server = serve("openai-chat", [TAGGED])
    session = Session(
        "gpt-4.1",
        policy=settings(model=model),
        limits=LIMITS,
        summariser=summarise.openai(server.client(), "gpt-4.1-nano"),
    )
    turns = [
        Turn(calls=(Call("bash", f"{n}", "x = 1\n" * 400),)) for n in range(6)
    ]
    session.compact(
        histories.request("openai-chat", histories.wire("openai-chat", turns))
    )
    assert server.requests[0].body["model"] == asked
