"""What three documents say of compaction, sentence by sentence."""

import pytest

from tests import histories
from tests.histories import Call, Turn
from tests.presets.three_layer import Asked, words
from tests.servers import Call as Asks
from tests.servers import Reply as Says
from ullage import ConfigError, Limits, Session, Usage, documents
from ullage.core.values.effects import Reply
from ullage.documents.presets.multi_stage import (
    NARRATIVE,
    MultiStageSettings,
    multi_stage,
)
from ullage.documents.presets.output_cache import (
    CompactionConfig,
    TokenUsage,
    ToolOutputCacheConfig,
    output_cache,
    prompt_of,
    should_compact,
)
from ullage.documents.presets.three_layer import COMPACTION, ThreeLayerSettings
from ullage.doors.loop import run_turn
from ullage.policy.stages import rough
from ullage.policy.stages.account import flatten
from ullage.wires import FORMATS
from ullage.wires.rules.checker import problems_of

LIMITS = Limits(window_tokens=10_000, output_reserve_tokens=1_000)


class Writer:
    """A summariser that answers in each document's form."""

    def __init__(self, text):
        self.text, self.asked = text, []

    def __call__(self, asked):
        self.asked.append(asked)
        return Reply(text=self.text.replace("{n}", str(len(self.asked))))


TAGGED = "<retain>ref=abc is the trace</retain><summary>The loader was read.</summary>"
SHORT = [
    Turn(user="Mend it.", calls=(Call("bash", "x", "output\n" * 300),))
    for _ in range(5)
]
MESSAGES = histories.wire("openai-chat", SHORT)
REQUEST = histories.request("openai-chat", MESSAGES)


def cached(writer=None, reported=None, limits=LIMITS, **config):
    """A session of the output-cache preset that had a reply reported before its last turn."""
    policy = output_cache(
        ToolOutputCacheConfig(compaction=CompactionConfig(**config))
    )
    session = Session(
        "gpt-4.1", policy=policy, limits=limits, summariser=writer
    )
    if reported is not None:
        session.fit(histories.request("openai-chat", MESSAGES[:-3]))
        session.observe(reported)
    return session, session.fit(REQUEST)["messages"]


def compactions(session):
    return [event for event in session.events if event.kind == "compacted"]


# ── output-cache, section 2 ──────────────────────────────────────────────────────────────


@pytest.mark.says(
    "output-cache-and-compaction",
    "2.2 Configuration (CompactionConfig)",
    "enabled?: boolean;         // default true",
)
@pytest.mark.says(
    "output-cache-and-compaction",
    "2.2 Configuration (CompactionConfig)",
    "auto?: boolean; // default true (if false, suppress automatic compaction)",
)
@pytest.mark.says(
    "output-cache-and-compaction",
    "2.2 Configuration (CompactionConfig)",
    "thresholdRatio?: number;   // default 0.8",
)
@pytest.mark.says(
    "output-cache-and-compaction",
    "2.2 Configuration (CompactionConfig)",
    "retainLastTurns?: number; // default 1 (retains the last N turns)",
    lives="ullage.documents.presets.output_cache.CompactionConfig",
)
def test_the_settings_of_a_compaction_and_their_keys():
    config = CompactionConfig()
    assert (config.enabled, config.auto, config.threshold_ratio) == (
        True,
        True,
        0.8,
    )
    assert (config.model, config.retain_prompt, config.retain_last_turns) == (
        None,
        None,
        1,
    )
    assert config.summary_directives == config.retain_directives == ()
    keys = {
        "thresholdRatio": 0.5,
        "model": "m",
        "summaryPrompt": "Sum up.",
        "retainLastTurns": 2,
    }
    loaded = documents.load("output_cache", {"compaction": keys})
    assert loaded.on_request.keywords["prompt"].closing == "Sum up."
    assert loaded.on_request.keywords["prompt"].model == "m"
    with pytest.raises(ConfigError, match="thresholdRatio"):
        documents.load("output_cache", {"compaction": {"thresholdRatio": 8}})


@pytest.mark.says(
    "output-cache-and-compaction",
    "2.3 Token Usage",
    "total = input + cache_creation + cache_read + output",
    lives="ullage.documents.presets.output_cache.TokenUsage",
)
@pytest.mark.says(
    "output-cache-and-compaction",
    "2.3 Token Usage",
    "Being able to create `TokenUsage` from `ChatInvokeUsage`.",
)
@pytest.mark.says(
    "output-cache-and-compaction", "2.3 Token Usage", "input_tokens: number;"
)
@pytest.mark.says(
    "output-cache-and-compaction", "2.3 Token Usage", "output_tokens: number;"
)
@pytest.mark.says(
    "output-cache-and-compaction",
    "2.3 Token Usage",
    "cache_creation_tokens: number;",
)
@pytest.mark.says(
    "output-cache-and-compaction",
    "2.3 Token Usage",
    "cache_read_tokens: number;",
)
@pytest.mark.says(
    "output-cache-and-compaction",
    "2.3 Token Usage",
    "total_tokens: number; // computed",
)
def test_token_usage_has_each_token_once_whatever_the_provider_calls_it():
    assert TokenUsage() == TokenUsage(
        input_tokens=0,
        output_tokens=0,
        cache_creation_tokens=0,
        cache_read_tokens=0,
    )
    anthropic = {
        "input_tokens": 5,
        "output_tokens": 7,
        "cache_creation_input_tokens": 11,
        "cache_read_input_tokens": 13,
    }
    made = TokenUsage.of(FORMATS["anthropic"].usage({"usage": anthropic}))
    assert made == TokenUsage(
        input_tokens=5,
        output_tokens=7,
        cache_creation_tokens=11,
        cache_read_tokens=13,
    )
    assert made.total_tokens == 36
    openai = {"prompt_tokens": 20, "completion_tokens": 4, "total_tokens": 24}
    openai["prompt_tokens_details"] = {"cached_tokens": 8}
    made = TokenUsage.of(FORMATS["openai-chat"].usage({"usage": openai}))
    assert (made.input_tokens, made.cache_read_tokens, made.total_tokens) == (
        12,
        8,
        24,
    )


@pytest.mark.says(
    "output-cache-and-compaction",
    "2.5 shouldCompact",
    "`enabled=false` → false",
)
@pytest.mark.says(
    "output-cache-and-compaction",
    "2.5 shouldCompact",
    "`auto=false` → false (automatic determination is disabled)",
)
@pytest.mark.says(
    "output-cache-and-compaction",
    "2.5 shouldCompact",
    "`tokenUsage.total_tokens >= threshold` → true",
    lives="ullage.documents.presets.output_cache.should_compact",
)
@pytest.mark.says(
    "output-cache-and-compaction",
    "2.4 Determining the context limit",
    "threshold = contextLimit * thresholdRatio",
)
@pytest.mark.parametrize(
    ("config", "total", "expected"),
    [
        ({}, 8_000, True),
        ({}, 7_999, False),
        ({"threshold_ratio": 0.5}, 5_000, True),
        ({"enabled": False}, 9_999, False),
        ({"auto": False}, 9_999, False),
    ],
)
def test_when_it_compacts_by_the_last_reported_usage(config, total, expected):
    usage = Usage(fresh_tokens=total - 1_000, output_tokens=1_000)
    asked = should_compact(
        CompactionConfig(**config), TokenUsage.of(usage), 10_000
    )
    assert asked is expected
    session, _ = cached(reported=usage, **config)
    assert bool(compactions(session)) is expected


@pytest.mark.says(
    "output-cache-and-compaction",
    "2.4 Determining the context limit",
    "Use if you can get `max_input_tokens` or `max_tokens` from price/model information",
    lives="ullage.core.tokens.catalog.lookup",
)
@pytest.mark.says(
    "output-cache-and-compaction",
    "2.4 Determining the context limit",
    "Error (strict) if it cannot be obtained.",
)
def test_the_limit_is_the_models_own_and_an_unknown_model_is_an_error():
    session, _ = cached(limits=None)
    assert session.window.context_tokens == 1_000_000
    unknown = Session(
        "nobody-knows", policy="output_cache", format="openai-chat"
    )
    with pytest.raises(ConfigError, match="no window is known"):
        unknown.fit({"model": "nobody-knows", "messages": MESSAGES})


def test_manual_compaction_works_where_the_automatic_one_is_off():
    session, before = cached(Writer(TAGGED), auto=False)
    assert before == MESSAGES
    assert session.compact(REQUEST)
    assert len(session.fit(REQUEST)["messages"]) < len(MESSAGES)
    off, _ = cached(enabled=False)
    with pytest.raises(ConfigError, match="no compaction"):
        off.compact(REQUEST)


FULL = Usage(fresh_tokens=8_000)


@pytest.mark.says(
    "output-cache-and-compaction",
    "2.7 checkAndCompact (History replacement)",
    "Replace the entire history with “retain + summary + last N turns”",
    lives="ullage.policy.stages.compact.compact",
)
@pytest.mark.says(
    "output-cache-and-compaction",
    "2.7 checkAndCompact (History replacement)",
    "retain is inserted at the beginning as `UserMessage`",
)
@pytest.mark.says(
    "output-cache-and-compaction",
    "2.7 checkAndCompact (History replacement)",
    "summary should be `UserMessage(content=summary)`",
)
@pytest.mark.says(
    "output-cache-and-compaction",
    "2.7 checkAndCompact (History replacement)",
    "If `retainLastTurns` exists, leave the most recent N turns",
)
@pytest.mark.says(
    "output-cache-and-compaction",
    "3. Checkpoints to implement while learning",
    "When compaction exceeds threshold, replace history with retain + summary",
)
@pytest.mark.says(
    "output-cache-and-compaction",
    "Context Management Spec（tool output cache / compaction）",
    "compaction: replace history with summary at token threshold",
)
@pytest.mark.parametrize("turns", [1, 2])
def test_the_history_is_replaced_by_retain_summary_and_the_last_turns(turns):
    _, view = cached(Writer(TAGGED), FULL, retain_last_turns=turns)
    task, retain, summary, *last = view
    assert task is MESSAGES[0]
    assert retain["role"] == summary["role"] == "user"
    assert retain["content"].endswith("ref=abc is the trace")
    assert "The loader was read." in summary["content"]
    assert [message["role"] for message in last].count("assistant") == turns
    assert last[-1] is MESSAGES[-1]
    assert not problems_of("openai-chat", view)


@pytest.mark.says(
    "output-cache-and-compaction",
    "2.6 compact (generate summary)",
    "“Format” messages for summaries",
)
@pytest.mark.says(
    "output-cache-and-compaction",
    "2.6 compact (generate summary)",
    "Add interrupt message (retain+summary instruction) to the end as `UserMessage`",
)
@pytest.mark.says(
    "output-cache-and-compaction",
    "2.6 compact (generate summary)",
    "Call LLM without tool (`tools=null`)",
)
@pytest.mark.says(
    "output-cache-and-compaction",
    "2.6 compact (generate summary)",
    "Interrupt messages and LLM responses are not recorded in history",
)
@pytest.mark.says(
    "output-cache-and-compaction",
    "2.6.3 summaryDirectives (additional instructions)",
    "If `summaryDirectives` exists, add it as a bulleted list at the end of the summary prompt.",
    lives="ullage.documents.presets.output_cache.prompt_of",
)
@pytest.mark.says(
    "output-cache-and-compaction",
    "2.6.4 retainPrompt / retainDirectives",
    "If `retainPrompt` is present, use it to indicate the `<retain>` section in the interrupt "
    "message.",
)
@pytest.mark.says(
    "output-cache-and-compaction",
    "2.6.4 retainPrompt / retainDirectives",
    "Add `retainDirectives` in bullet points.",
)
def test_the_interrupt_message_comes_last_and_stays_out_of_the_history():
    writer = Writer(TAGGED)
    words = {
        "summary_prompt": "Put all of it into a <summary> tag, please.",
        "summary_directives": ("Name every pod.",),
        "retain_prompt": "And into a <retain> tag what must stay.",
        "retain_directives": ("Refs first.",),
    }
    session, view = cached(writer, FULL, **words)
    asked = writer.asked[0]
    assert asked.texts[-1] == (
        "Put all of it into a <summary> tag, please.\n- Name every pod.\n\n"
        "And into a <retain> tag what must stay.\n- Refs first."
    )
    assert asked.texts[0].startswith("[user]\nMend it.")
    assert "<retain>" not in prompt_of(CompactionConfig()).closing
    assert (
        "<retain>"
        in prompt_of(CompactionConfig(retain_directives=("x",))).closing
    )
    untagged = prompt_of(
        CompactionConfig(
            retain_prompt="Keep the refs.", retain_directives=("x",)
        )
    )
    assert untagged.closing.endswith(
        "Keep the refs. Put it between <retain> and </retain>.\n- x"
    )
    text = str(view)
    for mine in (
        "please",
        "Name every pod",
        "Refs first",
        "<summary>",
        "<retain>",
    ):
        assert mine not in text
    assert session.state.ledger


@pytest.mark.says(
    "output-cache-and-compaction",
    "2.6 compact (generate summary)",
    "Extract `<retain>...</retain>` and `<summary>...</summary>` from the returned text",
    lives="ullage.core.turn.filling.judge",
)
@pytest.mark.parametrize(
    ("text", "retained", "summarised"),
    [
        (TAGGED, True, True),
        ("<summary>The loader was read.</summary>", False, True),
        ("<retain>ref=abc is the trace</retain>", False, False),
        ("nothing of the kind", False, False),
    ],
)
def test_what_a_missing_tag_means(text, retained, summarised):
    _, view = cached(Writer(text), FULL)
    assert ("ref=abc is the trace" in str(view)) is retained
    assert ("The loader was read." in str(view)) is summarised
    assert "Message 2:\\nMend it." in str(view)


@pytest.mark.says(
    "output-cache-and-compaction",
    "2.6.2 Preference for compaction.model",
    "If `model` is specified: summary calls use that model",
)
@pytest.mark.says(
    "output-cache-and-compaction",
    "2.6.2 Preference for compaction.model",
    "If `model` is `null`/unspecified: Use normal LLM (caller's model)",
    lives="ullage.session.summarise.Summariser",
)
@pytest.mark.parametrize("model", [None, "gpt-5-mini"])
def test_whose_model_is_asked(model):
    writer = Writer(TAGGED)
    session, _ = cached(writer, FULL, model=model)
    asked = writer.asked[0]
    summariser = session._summaries.summariser
    assert summariser.model_for(asked.model, asked.caller) == (
        model or "gpt-4.1"
    )


@pytest.mark.says(
    "output-cache-and-compaction",
    "2.6.1 Formatting for summaries (important)",
    "If `content` is present, replace it with “AssistantMessage without tool_calls (content only)”",
    lives="ullage.policy.stages.account.flatten",
)
@pytest.mark.says(
    "output-cache-and-compaction",
    "2.6.1 Formatting for summaries (important)",
    "If `content` is not present, drop the message (do not include it in the summary)",
)
@pytest.mark.says(
    "output-cache-and-compaction",
    "2.6.1 Formatting for summaries (important)",
    "If messages ends with `AssistantMessage(tool_calls!=empty)`:",
)
@pytest.mark.says(
    "output-cache-and-compaction",
    "3. Checkpoints to implement while learning",
    "It is possible to reproduce in a test the phenomenon that the tool_calls of assistant at the "
    "end are not removed or it breaks.",
)
@pytest.mark.parametrize("said", ["I look.", ""])
def test_calls_of_the_last_message_are_not_in_the_summary_request(said):
    messages = histories.wire(
        "openai-chat", [*SHORT, Turn(said=said, calls=SHORT[0].calls)]
    )[:-1]
    session = Session("gpt-4.1", limits=LIMITS)
    session.fit(histories.request("openai-chat", messages))
    transcript = session.window.transcript
    pieces = flatten(transcript, 0, len(transcript))
    assert (pieces[-1] == "[assistant]\nI look.\n") is bool(said)
    assert pieces[-1].startswith("[assistant]" if said else "[tool]")
    cut = flatten(transcript, 0, len(transcript) - 1)
    assert "calls bash" in "".join(cut)  # an answered call is told of


@pytest.mark.says(
    "output-cache-and-compaction",
    "2.7.1 Rebuilding the provider-specific history cache",
    "Just replacing view messages does not shorten the sending history",
)
@pytest.mark.says(
    "output-cache-and-compaction",
    "2.7.1 Rebuilding the provider-specific history cache",
    "Previous provider output items are not consistent with the summarized history and are "
    "therefore discarded.",
)
def test_the_items_of_the_responses_api_are_rebuilt_from_the_compacted_history():
    items = histories.wire(
        "openai-responses", [Turn(thought=True, calls=t.calls) for t in SHORT]
    )
    session = Session(
        "gpt-5.6", policy="output_cache", limits=Limits(window_tokens=50_000)
    )
    request = histories.request("openai-responses", items)
    assert session.compact(request)
    sent = session.fit(request)["input"]
    assert len(sent) < len(items) // 2
    kept = {item["id"] for item in sent if "id" in item}
    assert "rs_0" not in kept
    assert "fc_0_0" not in kept
    assert not problems_of("openai-responses", sent)


@pytest.mark.says(
    "output-cache-and-compaction",
    "2.8 Inclusion in the Agent loop",
    "Can perform compaction judgment after each LLM call (after usage is taken)",
)
@pytest.mark.says(
    "output-cache-and-compaction",
    "2.8 Inclusion in the Agent loop",
    "Call compaction after tool execution (however, “last usage” is used for judgment)",
)
@pytest.mark.says(
    "output-cache-and-compaction",
    "2.8 Inclusion in the Agent loop",
    "Pass compaction once just before finishing (before final return)",
    lives="ullage.doors.loop.run_turn",
)
@pytest.mark.parametrize("full_at", [1, 3])
def test_the_loop_compacts_after_the_tools_and_before_the_final_return(
    full_at, serve
):
    """With the usage of the reply before: after the tools of the first, or at the very end."""
    script = [
        Says("", [Asks("look")]),
        Says("", [Asks("look")]),
        Says("", [Asks("look")]),
        "Done.",
    ]
    server = serve("openai-chat", script)
    writer = Writer(TAGGED)
    session = Session(
        "gpt-4.1", policy="output_cache", limits=LIMITS, summariser=writer
    )
    client, seen = server.client(), []

    def look() -> str:
        """Look."""
        return "what there is to see\n" * 30

    def call(**view):
        reply = client.chat.completions.create(**view)
        seen.append(len(compactions(session)))
        if len(seen) == full_at + 1:
            reply.usage.prompt_tokens, reply.usage.completion_tokens = (
                7_900,
                200,
            )
        return reply

    request = {
        "model": "gpt-4.1",
        "messages": [{"role": "user", "content": "Go."}],
    }
    run_turn(call, session, request, tools=[look])
    assert len(compactions(session)) == 1
    assert seen == ([0, 0, 1, 1] if full_at == 1 else [0, 0, 0, 0])


# ── multi-stage, section 1 ───────────────────────────────────────────────────────────────


def events(count):
    return [
        Turn(
            said=f"Event {n}.",
            calls=(Call("query", f"{n}", "a metric and its value\n" * 300),),
        )
        for n in range(count)
    ]


@pytest.mark.says(
    "multi-stage-strategy",
    "Sliding Window Compaction (Runner Level)",
    "As events are added to a session, older events are summarized into a natural language "
    "narrative, while the most recent `N` events are kept in full.",
    lives="ullage.documents.presets.multi_stage.multi_stage",
)
@pytest.mark.says(
    "multi-stage-strategy",
    "Sliding Window Compaction (Runner Level)",
    "The `context_compactor.py` implements a persistent sliding window at the `Runner` level.",
)
@pytest.mark.says(
    "multi-stage-strategy",
    "Sliding Window Compaction (Runner Level)",
    "**Trigger**: ~24k tokens.",
)
@pytest.mark.says(
    "multi-stage-strategy",
    "Sliding Window Compaction (Runner Level)",
    "**Budget**: ~32k tokens.",
)
@pytest.mark.parametrize("format", sorted(FORMATS))
def test_a_window_slides_over_the_events(format, tmp_path):
    writer = Writer("<summary>They measured {n} times.</summary>")
    messages, seen = histories.wire(format, events(60)), []
    more = {"policy": "multi_stage", "format": format, "summariser": writer}
    more["store"] = tmp_path / "kept.db"
    session, wire = Session("", **more), FORMATS[format]
    for length in range(1, len(messages) + 1):
        request = histories.request(format, messages[:length])
        view = wire.history(session.fit(request))
        before = bool(compactions(session))
        seen.append(session.window.estimate)
        assert (
            view[-min(10, length) :] == messages[max(length - 10, 0) : length]
        )
        assert before or session.window.estimate <= 24_000
    assert max(seen) <= 32_000
    made = len(compactions(session))
    assert 3 < made < 30
    assert (
        "They measured" in writer.asked[1].texts[0]
    )  # a summary of summaries
    assert writer.asked[0].system == NARRATIVE.system
    session.close()
    other = Session("", **more)
    assert wire.history(other.fit(request)) == view
    other.close()
    assert len(writer.asked) == made


def test_the_window_and_the_brake_can_each_be_switched_off():
    still = multi_stage(MultiStageSettings(COMPACTION_TRIGGER_TOKENS=0))
    assert not still.under_pressure
    with pytest.raises(ConfigError, match="under the trigger"):
        MultiStageSettings(COMPACTION_BUDGET_TOKENS=10)
    messages = histories.wire("openai-chat", events(60))
    session = Session("gpt-4.1", policy=still)
    assert (
        session.fit(histories.request("openai-chat", messages))["messages"]
        == messages
    )


# ── three-layer, layer 3 ─────────────────────────────────────────────────────────────────

WRITTEN = """## Conversation Summary

### Context
A loader.

### Key Decisions
- b.py

### Changes Made
- none

### Current State
Reading.

### Pending Items
- the cache"""
WINDOW = Limits(window_tokens=100_000, output_reserve_tokens=5_000)
CALM = ThreeLayerSettings(prune_threshold=1.0, default_max_output_tokens=0)


def played(writer, outputs=9, settings=CALM):
    asked = Asked(settings, model="gpt-4.1", limits=WINDOW, summariser=writer)
    for number in range(outputs):
        asked.tool(words(40_000, f"{number:02}"))
    return asked


@pytest.mark.says(
    "three-layer-management",
    "Key Constants",
    "public const double CompactionThreshold = 0.90; // 90% of context",
)
@pytest.mark.says(
    "three-layer-management",
    "Key Constants",
    "public const int CompactionTargetPercent = 50; // Target 50% after compaction",
    lives="ullage.documents.presets.three_layer.ThreeLayerSettings",
)
@pytest.mark.says(
    "three-layer-management", "Configuration", '"CompactionThreshold": 0.90,'
)
@pytest.mark.says(
    "three-layer-management", "Configuration", '"CompactionTargetPercent": 50,'
)
@pytest.mark.says(
    "three-layer-management",
    "Compaction Service",
    "var threshold = (int)(contextLimit * TokenConstants.CompactionThreshold);",
)
@pytest.mark.says(
    "three-layer-management",
    "Compaction Service",
    "var targetTokens = (int)(contextLimit * TokenConstants.CompactionTargetPercent / 100.0);",
    lives="ullage.policy.stages.compact.oldest_rough",
)
def test_it_compacts_at_90_per_cent_to_50():
    asked = played(Writer(WRITTEN), outputs=8)
    assert 80_000 < rough.view_tokens(asked.session.window) < 90_000
    assert not asked.told("compacted")
    asked.tool(words(40_000, "08"))
    assert len(asked.told("compacted")) == 1
    assert 35_000 < rough.view_tokens(asked.session.window) <= 50_000


@pytest.mark.says(
    "three-layer-management",
    "Compaction Service",
    "[Previous conversation compacted]",
)
@pytest.mark.says(
    "three-layer-management",
    "Compaction Service",
    "[End of compacted summary - {compactionPart.CompactedMessageCount} messages, "
    "{compactionPart.CompactedTokenCount} tokens]",
    lives="ullage.documents.presets.three_layer.COMPACTION",
)
@pytest.mark.says(
    "three-layer-management",
    "Testing Strategy",
    "// Verify messages before compaction are replaced with summary",
)
def test_the_synthetic_message_stands_for_what_was_before():
    asked = played(Writer(WRITTEN))
    text = asked.view[0]["content"]
    start, stop = asked.session.window.summaries[-1][:2]
    assert start == 0
    assert text.startswith(
        f"[Previous conversation compacted]\n\n{WRITTEN}\n\n"
    )
    assert text.splitlines()[-1].startswith(
        f"[End of compacted summary - {stop} messages, "
    )
    tokens = sum(
        sum(asked.session.window.leaf_counts(at)) for at in range(stop)
    )
    assert text.endswith(f" messages, {tokens} tokens]"), (
        "as the window counts the originals"
    )
    assert "Message 1:\nGo." in text
    assert asked.view[1:] == asked.messages[stop:]


def test_the_boundary_is_where_a_reply_begins_also_where_the_users_message_would_do():
    """Deviation: a template that wants the roles in turn refuses two messages of the user."""
    messages = [{"role": "user", "content": words(10_000, "a")}]
    messages += [{"role": "assistant", "content": words(30_000, "b")}]
    messages += [{"role": "user", "content": "And then?"}]
    messages += [{"role": "assistant", "content": words(140_000, "c")}]
    for number in range(3):
        messages += [{"role": "user", "content": words(80_000, f"{number}")}]
        messages += [{"role": "assistant", "content": f"Done {number}."}]
    messages += [{"role": "user", "content": "Go on."}]
    session = Session(
        "gpt-4.1", policy=documents.three_layer(CALM), limits=WINDOW
    )
    view = session.fit(histories.request("openai-chat", messages))["messages"]
    stop = session.window.summaries[-1].stop
    assert messages[stop - 1]["role"] == "user", "which the target falls on"
    assert messages[stop]["role"] == "assistant"
    assert [message["role"] for message in view[:2]] == ["user", "assistant"]


def test_a_history_first_seen_over_its_threshold_has_the_deterministic_summary():
    """Deviation: no model is asked of places that were passed before anybody was there."""
    seen = played(Writer(WRITTEN))
    writer = Writer(WRITTEN)
    late = Session(
        "gpt-4.1",
        policy=documents.three_layer(CALM),
        limits=WINDOW,
        summariser=writer,
    )
    more = [*seen.messages, {"role": "assistant", "content": "Done."}]
    more += [{"role": "user", "content": "Thanks."}]
    view = late.fit(histories.request("openai-chat", more))["messages"]
    assert writer.asked == []
    assert view[0]["content"].startswith("[Previous conversation compacted]")
    assert WRITTEN not in view[0]["content"]


@pytest.mark.says(
    "three-layer-management",
    "Compaction Service",
    "You are a conversation summarizer. Your task is to create a concise summary of the "
    "conversation history.",
)
@pytest.mark.says(
    "three-layer-management",
    "Compaction Service",
    "Keep the summary under 2000 tokens. Be concise but preserve critical context.",
)
@pytest.mark.says(
    "three-layer-management", "Compaction Service", "MaxTokens = 2000"
)
def test_the_prompt_its_conversation_and_its_most_tokens():
    writer = Writer(WRITTEN)
    played(writer)
    asked = writer.asked[0]
    assert asked.system == COMPACTION.system
    assert asked.system.startswith(
        "You are a conversation summarizer. Your task is to create a"
    )
    assert asked.system.endswith("preserve critical context.")
    assert asked.texts[0].startswith(
        "Summarize this conversation:\n\n[user]\nGo.\n\n[assistant]\n"
    )
    assert len(asked.texts) == 1
    assert asked.most_tokens == 2_000


@pytest.mark.says(
    "three-layer-management",
    "Compaction Service",
    'return response.Content ?? "[Compaction failed]";',
    lives="ullage.core.turn.filling.judge",
)
@pytest.mark.parametrize(
    "text", ["", "[Compaction failed]", "It went well.", WRITTEN[:60]]
)
def test_a_failed_summary_is_never_shown_as_one(text):
    asked = played(Writer(text))
    shown = asked.view[0]["content"]
    assert "[Compaction failed]" not in shown
    assert shown.startswith(
        "[Previous conversation compacted]\n\n## The user's words\nMessage 1:\n"
    )
    assert asked.told("summary_refused")


@pytest.mark.says(
    "three-layer-management",
    "Compaction Service",
    "if (messagesToCompact.Count < 2)",
)
@pytest.mark.says(
    "three-layer-management",
    "Compaction Service",
    '_logger.LogWarning("Not enough messages to compact");',
    lives="ullage.Event",
)
def test_too_few_messages_are_a_warning():
    """The newest turn is never summarised, and behind it there is the task alone."""
    told = Asked(CALM, model="gpt-4.1", limits=WINDOW)
    told.messages[0]["content"] = words(330_000, "00")
    told.tool(words(40_000, "01"))
    assert [event.why for event in told.told("held")] == [
        "Not enough messages to compact"
    ]
    assert told.view == told.messages
