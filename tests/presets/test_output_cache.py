"""`output-cache-and-compaction.md`, section 1, in its order: the preset ``output_cache``."""

import asyncio
import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from lab import reading
from tests import histories
from tests.presets.mutations import mutated, settings_mutated
from tests.presets.played import ROOMY, new_session, played
from tests.servers import Call, Reply
from tests.servers.loops import loop
from ullage import (
    AsyncSession,
    ConfigError,
    Limits,
    OverLimitError,
    RefNotFound,
    Session,
    ToolOutputRef,
    documents,
)
from ullage.core.history.canon import ref_of
from ullage.core.tokens.catalog import lookup
from ullage.core.tokens.exact import exact
from ullage.documents.presets.output_cache import (
    CompactionConfig,
    ToolOutputCacheConfig,
    output_cache,
)
from ullage.policy.stages.pressure import output_tokens
from ullage.wires import FORMATS

TINY = ToolOutputCacheConfig(
    context_budget_tokens=500, max_message_bytes=600, max_line_length=60
)
every = pytest.mark.parametrize("format", sorted(FORMATS))


def turn(output, **more):
    return histories.Turn(
        calls=(histories.Call("bash", "make", output, **more),)
    )


def log(name, lines=90):
    return "".join(f"{name} line {n}\n" for n in range(lines))


def shown(view):
    """The text of every tool result of a view."""
    return [
        text
        for message in view
        for _, texts in reading.results(message)
        for text in texts
    ]


def placeholder(text):
    return f"[tool output trimmed; ref={ref_of(text)}]"


def note(text):
    return (
        f"[Continuation can be expanded with reference ID: ref={ref_of(text)}]"
    )


def call_ids(messages):
    return [
        call_id
        for message in messages
        for call_id, _ in reading.results(message)
    ]


def by_lines(session, ref):
    """The original of a ref, rebuilt with the document's own tool from its pages of lines."""
    lines, offset = [], 0
    while offset is not None:
        page = reading.ask(
            session, "tool_output_cache", {"ref_id": ref, "offset": offset}
        )
        rows = page.split("\n")
        more = re.fullmatch(
            r"\[lines [\d,]+ to [\d,]+ of [\d,]+\. Next: offset=(\d+)\]",
            rows[-1],
        )
        numbered = [
            row.split("\t", 1) for row in (rows[:-1] if more else rows)
        ]
        assert [int(number) for number, _ in numbered] == [
            offset + n for n in range(1, len(numbered) + 1)
        ]
        lines += [_whole_line(session, ref, text) for _, text in numbered]
        offset = int(more[1]) if more else None
    return "\n".join(lines)


def _whole_line(session, ref, text):
    """A line, read on to its end where the page says how."""
    cut = re.search(
        r" \[… ([\d,]+) more characters: get_continuation\(.*offset=(\d+)\)\]$",
        text,
    )
    if cut is None:
        return text
    count, offset = int(cut[1].replace(",", "")), int(cut[2])
    return text[: cut.start()] + reading.follow(session, ref, offset)[:count]


# 1.1 Purpose, 1.2 Terminology


@pytest.mark.says(
    "output-cache-and-compaction",
    "Context Management Spec（tool output cache / compaction）",
    "tool output cache: retains tool output as much as possible, "
    "trims old output when the limit is exceeded and leaves a reference ID",
    lives="ullage.documents.presets.output_cache",
    see="ullage replay --policy output_cache runs",
)
@pytest.mark.says(
    "output-cache-and-compaction",
    "1.1 Purpose",
    "However, the tool output is retained as much as possible because it is “recently necessary”",
    lives="ullage.documents.presets.output_cache",
)
def test_as_much_is_kept_as_the_budget_holds_and_the_newest_of_it():
    """Half a million tokens of window: outputs may have 60,000, the default."""
    outputs = [f"{n}\n" + "the tide came in again\n" * 2_000 for n in range(9)]
    turns = [turn(output) for output in outputs]
    session, _, views = played(output_cache(), "openai-chat", turns, 500_000)
    seen = shown(views[-1])
    kept = [text == output for text, output in zip(seen, outputs, strict=True)]
    first = kept.index(True)
    assert kept == [False] * first + [True] * (9 - first)
    assert 0 < first < 8
    assert seen[:first] == [placeholder(output) for output in outputs[:first]]
    one = session.window.leaf_tokens(
        (len(session.window.transcript) - 1, 0, 0)
    )
    assert (
        session.window.total(output_tokens)
        <= 60_000
        < session.window.total(output_tokens) + one
    )


@pytest.mark.says(
    "output-cache-and-compaction",
    "1.1 Purpose",
    "Ability to instantly retrieve content from a reference ID when needed",
    lives="ullage.session.recall",
    see="ullage read REF",
)
@pytest.mark.says(
    "output-cache-and-compaction",
    "1.2 Terminology",
    "tool output cache: A cache that stores the full contents of tool output.",
    lives="ullage.stores",
    see="ullage read REF",
)
@pytest.mark.says(
    "output-cache-and-compaction",
    "1.8 Deployment (tool_output_cache)",
    "Provide standard tools for retrieving content from reference IDs:",
    lives="ullage.core.values.toolset.OURS",
)
@every
def test_every_output_comes_back_whole_line_by_line(format):
    """Shown whole, shown in part or trimmed: the same call reads each of them."""
    outputs = [
        log("a"),
        "one long line " * 900,
        "kurz: ß € 😀\r\nund aus",
        log("b", 900),
        "ok",
    ]
    session, messages, _ = played(
        output_cache(TINY), format, [turn(text) for text in outputs]
    )
    for call_id, text in zip(call_ids(messages), outputs, strict=True):
        ref = session.output_ref(call_id)
        assert ref.id == ref_of(text)
        assert by_lines(session, ref.id) == text


@pytest.mark.says(
    "output-cache-and-compaction",
    "1.2 Terminology",
    "in-context view: Output sent to model (trimmed if necessary)",
    lives="ullage.policy.stages.shapes",
)
@every
def test_what_is_sent_is_the_view_and_the_history_keeps_the_output(format):
    text = log("a")
    _, messages, (_, view) = played(output_cache(TINY), format, [turn(text)])
    (seen,) = shown(view)
    assert seen != text
    assert seen.endswith(note(text))
    assert shown(messages) == [text]


# 1.3 Configuration


@pytest.mark.says(
    "output-cache-and-compaction",
    "1.3 Configuration (ToolOutputCacheConfig)",
    """export type ToolOutputCacheConfig = {
  enabled?: boolean;          // default true
contextBudgetTokens?: number | null; // null = derived from model context
  maxMessageBytes?: number;   // default 50 * 1024
  maxLineLength?: number;     // default 2000
""",
    lives="ullage.documents.presets.output_cache.ToolOutputCacheConfig",
)
def test_its_keys_and_their_defaults():
    document = {
        "enabled": True,
        "contextBudgetTokens": None,
        "maxMessageBytes": 50 * 1024,
        "maxLineLength": 2000,
        "compaction": CompactionConfig(),  # the document's second section, under a key of ours
    }
    fields = ToolOutputCacheConfig.__struct_encode_fields__
    values = [
        getattr(ToolOutputCacheConfig(), name)
        for name in ToolOutputCacheConfig.__struct_fields__
    ]
    assert dict(zip(fields, values, strict=True)) == document
    turns = [turn(log("a", 9_000)), turn(log("b"))]
    same = [
        played(policy, "openai-chat", turns)[2]
        for policy in (
            "output_cache",
            documents.load("output_cache", {**document, "compaction": {}}),
        )
    ]
    assert same[0] == same[1]


def test_where_it_is_not_enabled_nothing_is_touched_and_no_tool_is_added():
    policy = documents.load("output_cache", {"enabled": False})
    messages = histories.wire(
        "openai-chat", [turn(log("a", 9_000)), turn(log("b", 9_000))]
    )
    asked = histories.request("openai-chat", messages)
    session = Session(
        "gpt-4.1", policy=policy, limits=Limits(window_tokens=ROOMY)
    )
    assert session.fit(histories.request("openai-chat", messages[:1])) == {
        **asked,
        "messages": messages[:1],
    }
    assert session.fit(asked) == asked
    assert session.events == ()


@pytest.mark.says(
    "output-cache-and-compaction",
    "1.3 Configuration (ToolOutputCacheConfig)",
    "If `contextBudgetTokens` is `null`, calculate as follows: "
    "budget = clamp(context_window * 0.25, 20_000, 60_000)",
    lives="ullage.policy.stages.pressure.outputs_over",
)
@pytest.mark.parametrize(
    ("window_tokens", "budget_tokens"),
    [
        (40_000, 20_000),
        (120_000, 30_000),
        (400_000, 60_000),
        (240_000, 60_000),
    ],
)
def test_the_budget_is_a_quarter_of_the_window_within_bounds(
    window_tokens, budget_tokens
):
    """The outputs of a conversation whose tokens are exactly the budget, then one more."""
    count = exact("o200k_base").count
    word = " tide"
    assert count(word * 4_000) == 4_000
    parts = [4_000] * (budget_tokens // 4_000 - 1)
    parts.append(budget_tokens - sum(parts))
    turns = [turn(word * part) for part in parts]
    config = ToolOutputCacheConfig(
        max_line_length=1_000_000, max_message_bytes=1_000_000
    )
    policy = output_cache(config)
    _, messages, views = played(policy, "openai-chat", turns, window_tokens)
    assert views[-1] == messages
    session, _, views = played(
        policy, "openai-chat", [*turns, turn("a")], window_tokens
    )
    assert [
        text.startswith("[tool output trimmed") for text in shown(views[-1])
    ] == [
        True,
        *[False] * len(parts),
    ]
    assert session.window.total(output_tokens) <= budget_tokens


@pytest.mark.says(
    "output-cache-and-compaction",
    "1.3 Configuration (ToolOutputCacheConfig)",
    "The token can be an approximation of byte/4 if there is no real tokenizer.",
    lives="ullage.core.tokens",
)
def test_outputs_are_counted_by_the_tokenizer_or_else_near_four_bytes_a_token():
    text = (
        "The tide came in, and the harbour master wrote it down in his book again.\n"
        * 200
    )
    counts = {}
    for format in ("openai-chat", "anthropic"):
        session, _, _ = played(output_cache(), format, [turn(text)])
        counts[format] = session.window.total(output_tokens)
        assert session.window.meter.counter.exact == (format == "openai-chat")
    assert counts["openai-chat"] == exact("o200k_base").count(text)
    assert counts["anthropic"] == pytest.approx(
        len(text.encode()) / 4, rel=0.25
    )


BAD = [
    ({"maxMessageBytes": 0}, "maxMessageBytes"),
    ({"maxLineLength": -1}, "maxLineLength"),
    ({"contextBudgetTokens": -1}, "contextBudgetTokens"),
    ({"contextBudgetTokens": "60,000"}, "contextBudgetTokens"),
    ({"contextBudgetTokens": 0.25}, "contextBudgetTokens"),
    ({"enabled": "yes"}, "enabled"),
    ({"maxMessageBytes": None}, "maxMessageBytes"),
    ({"max_message_bytes": 10}, "max_message_bytes"),
]


@pytest.mark.parametrize(("given", "key"), BAD, ids=str)
def test_a_value_that_is_none_is_refused_by_its_key(given, key):
    with pytest.raises(ConfigError, match=key):
        documents.load("output_cache", given)


def test_values_given_by_name_are_held_to_the_same():
    with pytest.raises(ConfigError, match="maxLineLength"):
        ToolOutputCacheConfig(max_line_length="long")


# 1.4 ToolOutputRef, 1.5 Caching


@pytest.mark.says(
    "output-cache-and-compaction",
    "1.4 ToolOutputRef",
    "export type ToolOutputRef = { id: string; byte_size?: number; line_count?: number;",
    lives="ullage.session.recall.found.ToolOutputRef",
)
@pytest.mark.says(
    "output-cache-and-compaction",
    "1.2 Terminology",
    "output ref: cache reference ID (`ToolOutputRef`)",
    lives="ullage.session.recall.found.ToolOutputRef",
)
def test_a_ref_says_how_many_bytes_and_lines_there_are():
    assert ToolOutputRef("abc") == ToolOutputRef(
        id="abc", byte_size=None, line_count=None
    )
    texts = ["", "ß €\n\n😀", log("a", 3_000), "x" * 70_000]
    session, messages, _ = played(
        output_cache(TINY), "openai-chat", [turn(t) for t in texts]
    )
    assert [session.output_ref(call_id) for call_id in call_ids(messages)] == [
        ToolOutputRef(ref_of(text), len(text.encode()), text.count("\n") + 1)
        for text in texts
    ]


@pytest.mark.says(
    "output-cache-and-compaction",
    "1.4 ToolOutputRef",
    "ToolMessage optionally has `output_ref` (reference ID).",
    lives="ullage.Session.output_ref",
)
@pytest.mark.says(
    "output-cache-and-compaction",
    "1.5 Caching",
    "Once the tool output occurs: Save full contents to tool output cache and get `ToolOutputRef`",
    lives="ullage.Session.output_ref",
)
@pytest.mark.says(
    "output-cache-and-compaction",
    "1.5 Caching",
    "Generate in-context view and set it to ToolMessage\nKeep `output_ref` in ToolMessage",
    lives="ullage.policy.stages.truncate",
)
@every
def test_an_output_that_is_cut_is_kept_before_the_view_is_given_and_its_event_has_its_ref(
    format,
):
    """The ref of every tool message is the session's to tell; no wire has a field for it."""
    text = log("a")
    session, messages, (_, view) = played(
        output_cache(TINY), format, [turn(text)]
    )
    (event,) = [event for event in session.events if event.kind == "truncated"]
    ref = session.output_ref(event.ref)
    assert (ref.id, ref.byte_size, ref.line_count) == (
        event.ref,
        len(text),
        91,
    )
    assert session.store.get("", event.ref).text == text
    assert shown(view)[0].count(event.ref) == 1
    (call_id,) = call_ids(messages)
    assert session.output_ref(call_id) == ref


def test_from_the_store_alone_a_ref_says_the_same(tmp_path):
    """Another process, another conversation, the same tenant."""
    text, path = log("a", 5_000), tmp_path / "kept.db"
    policy = output_cache(TINY)
    messages = histories.wire("openai-chat", [turn(text)])
    with new_session(policy, "openai-chat", store=path) as first:
        first.fit(histories.request("openai-chat", messages))
        known = first.output_ref(ref_of(text))
    with new_session(policy, "openai-chat", store=path) as later:
        later.fit(
            histories.request(
                "openai-chat", [histories.user("openai-chat", "Hello.")]
            )
        )
        assert later.output_ref(ref_of(text)) == known

    async def ask():
        async with AsyncSession(
            "gpt-4.1", policy=policy, store=path
        ) as session:
            await session.fit(histories.request("openai-chat", messages))
            return await session.output_ref("call_0_0")

    assert asyncio.run(ask()) == known


def test_a_ref_that_nobody_knows_is_refused():
    session = new_session(output_cache(), "openai-chat")
    with pytest.raises(ConfigError, match="nothing was fitted"):
        session.output_ref("call_0_0")
    session.fit(
        histories.request(
            "openai-chat", histories.wire("openai-chat", [turn("ok")])
        )
    )
    with pytest.raises(RefNotFound):
        session.output_ref("call_9_9")


# 1.6 Generating in-context views


def view_of(text, max_bytes, max_line):
    """The document's three sentences as code."""
    lines, size = [], 0
    for line in (line[:max_line] for line in text.split("\n")):
        size += len(line.encode()) + 1
        if size > max_bytes:
            break
        lines.append(line)
    return "\n".join(lines) + "\n\n" + note(text)


@pytest.mark.says(
    "output-cache-and-compaction",
    "1.6 Generating in-context views",
    "Cut at line 1 `maxLineLength`\n- Abort if total exceeds `maxMessageBytes`",
    lives="ullage.policy.stages.shapes.head_lines",
)
@pytest.mark.says(
    "output-cache-and-compaction",
    "1.6 Generating in-context views",
    "If it is discontinued, add a note to the end saying "
    '"Continuation can be expanded with reference ID"',
    lives="ullage.documents.presets.output_cache",
)
def test_a_view_is_the_first_lines_each_cut_and_a_note_with_the_ref():
    long = "a line over the length of sixty characters, which is cut where those end"
    text = f"{long}\n" + log("next", 60)
    (seen,) = shown(
        played(output_cache(TINY), "openai-chat", [turn(text)])[2][-1]
    )
    lines = [long[:60], *(f"next line {n}" for n in range(42))]
    assert seen == "\n".join(lines) + "\n\n" + note(text)
    assert (
        len("\n".join(lines)) + 1
        <= 600
        < len("\n".join(lines)) + 1 + len("next line 42\n")
    )


def test_a_long_line_alone_is_cut_and_the_note_follows():
    text = "short\n" + "x" * 400 + "\nend"
    (seen,) = shown(
        played(output_cache(TINY), "openai-chat", [turn(text)])[2][-1]
    )
    assert seen == "short\n" + "x" * 60 + "\nend\n\n" + note(text)


lines = st.lists(st.text("ab ß€", max_size=90), max_size=40)


@given(lines, st.integers(1, 400), st.integers(1, 80))
def test_views_are_what_the_document_says_or_the_output_itself(
    lines, max_bytes, max_line
):
    text = "\n".join(lines)
    policy = output_cache(
        ToolOutputCacheConfig(
            max_message_bytes=max_bytes, max_line_length=max_line
        )
    )
    (seen,) = shown(played(policy, "openai-chat", [turn(text)])[2][-1])
    expected = view_of(text, max_bytes, max_line)
    if seen != text:
        assert seen == expected
    else:
        fits = len(text.encode()) <= max_bytes and all(
            len(line) <= max_line for line in lines
        )
        assert fits or len(expected) >= len(text)


def test_the_texts_of_one_result_share_its_bytes():
    """Anthropic and Responses send several texts in one result."""
    text = log("a", 30)
    turns = [turn(text, items=3)]
    seen = shown(played(output_cache(TINY), "anthropic", turns)[2][-1])
    assert seen == [text, text, f"a line 0\na line 1\n\n{note(text)}"]
    assert 2 * len(text) + len("a line 0\na line 1\n") <= 600


# 1.7 Trim when total size exceeds


@pytest.mark.says(
    "output-cache-and-compaction",
    "1.7 Trim when total size exceeds",
    "If the total token estimate in the tool output exceeds `contextBudgetTokens`: "
    "Prioritize and retain the most recent tool output (candidate in order of oldest)",
    lives="ullage.policy.stages.prune.results_only",
)
@pytest.mark.says(
    "output-cache-and-compaction",
    "1.7 Trim when total size exceeds",
    "Replace `content` in old ToolMessage with placeholder\n"
    "3. Leave `output_ref` and expand it with `tool_output_cache` if necessary\n"
    'Example placeholder: `"[tool output trimmed; ref=...]"`.',
    lives="ullage.policy.stages.placeholders.bare_placeholder",
)
@pytest.mark.says(
    "output-cache-and-compaction",
    "3. Checkpoints to implement while learning",
    "Ability to trim old output when tool output cache exceeds total size limit\n"
    "2. Trimmed ToolMessage becomes placeholder in serializer",
    lives="ullage.documents.presets.output_cache",
)
@every
def test_over_the_budget_the_oldest_outputs_become_placeholders(format):
    """Four outputs of much the same size, and a budget for two and a placeholder or two."""
    outputs = [log(name, 30) for name in "abcd"]
    alone = [
        played(output_cache(), format, [turn(text)])[0] for text in outputs
    ]
    sizes = [session.window.total(output_tokens) for session in alone]
    policy = output_cache(
        ToolOutputCacheConfig(context_budget_tokens=2 * max(sizes) + 60)
    )
    session, messages, views = played(
        policy, format, [turn(text) for text in outputs]
    )
    before, after = ([placeholder(text) for text in outputs[:2]], outputs[2:])
    assert [shown(view) for view in views[:5]] == [
        [],
        outputs[:1],
        outputs[:2],
        [before[0], *outputs[1:3]],
        [*before, *after],
    ]
    told = [event for event in session.events if event.kind == "pruned"]
    assert [event.ref for event in told] == [
        ref_of(text) for text in outputs[:2]
    ]
    assert [event.tokens_before for event in told] == sizes[:2]
    assert all(event.tokens_before > event.tokens_after for event in told)
    for text in outputs[:2]:
        assert by_lines(session, ref_of(text)) == text
    assert shown(messages) == outputs


def test_at_the_budget_nothing_is_trimmed_and_one_token_over_it_the_oldest_is():
    turns = [turn(log(name, 30)) for name in "abc"]
    held = played(output_cache(), "openai-chat", turns)[0].window.total(
        output_tokens
    )
    for budget, trimmed in ((held, 0), (held - 1, 1)):
        policy = output_cache(
            ToolOutputCacheConfig(context_budget_tokens=budget)
        )
        seen = shown(played(policy, "openai-chat", turns)[2][-1])
        assert (
            sum(text.startswith("[tool output trimmed") for text in seen)
            == trimmed
        )


def test_the_newest_results_stay_whatever_the_budget():
    both = (
        histories.Call("bash", "a", log("a")),
        histories.Call("bash", "b", log("b")),
    )
    turns = [turn(log("old")), histories.Turn(calls=both)]
    policy = output_cache(ToolOutputCacheConfig(context_budget_tokens=0))
    for format in sorted(FORMATS):
        seen = shown(played(policy, format, turns)[2][-1])
        assert seen == [placeholder(log("old")), log("a"), log("b")]


def test_a_placeholder_is_never_larger_than_what_it_stands_for():
    """43 characters of placeholder are 18 tokens: more than these outputs have."""
    small = [
        "ok",
        "",
        "3 passed in 0.02s",
        "the tide came in again, and again, and then once more",
    ]
    assert len(small[-1]) > len(placeholder(""))
    policy = output_cache(ToolOutputCacheConfig(context_budget_tokens=0))
    turns = [turn(text) for text in [*small, log("large"), "the last"]]
    seen = shown(played(policy, "openai-chat", turns)[2][-1])
    assert seen == [*small, placeholder(log("large")), "the last"]


def test_a_trimmed_output_stays_trimmed_to_the_byte():
    turns = [turn(log(name, 60)) for name in "abcdef"]
    _, _, views = played(output_cache(TINY), "openai-chat", turns)
    for before, after in pairwise(views):
        trimmed = [
            text
            for text in shown(before)
            if text.startswith("[tool output trimmed")
        ]
        assert shown(after)[: len(trimmed)] == trimmed


# 1.8 Deployment: the tools, on the wire of each vendor, through its own SDK


@every
def test_an_agent_reads_a_trimmed_output_again(serve, format):
    """It reads three files, finds the first one trimmed, and calls for lines 3 and 4 of it."""
    files = {name: log(name, 30) for name in "abc"}

    def model(captured):
        asked = len(server.requests)
        if asked < 3:
            return Reply("", [Call("read_file", {"path": "abc"[asked]})])
        if asked == 3:
            ref = re.search(
                rb"\[tool output trimmed; ref=(\w+)\]", captured.raw
            )[1]
            wanted = {"ref_id": ref.decode(), "offset": 2, "limit": 2}
            return Reply("", [Call("tool_output_cache", wanted)])
        return "Done."

    server = serve(format, model, strict=True)
    policy = output_cache(ToolOutputCacheConfig(context_budget_tokens=350))
    session = Session(
        histories.MODEL[format],
        policy=policy,
        format=format,
        limits=Limits(window_tokens=ROOMY),
    )
    loop(server, session, lambda name, arguments: files[arguments["path"]])
    assert len(server.requests) == 5
    sent = server.requests[-1].raw.decode()
    assert files["a"].replace("\n", "\\n") not in sent
    assert (
        "     3\\ta line 2\\n     4\\ta line 3\\n[lines 3 to 4 of 31. Next: offset=4]"
        in sent
    )


# 1.10: content parts are kept whole

IMAGE = {
    "type": "image",
    "source": {
        "type": "base64",
        "media_type": "image/png",
        "data": "iVBORw0KGgo=" * 300,
    },
}


@pytest.mark.says(
    "output-cache-and-compaction",
    "1.10 TODO (future improvement)",
    "For the tool output cache, consider a method that fully retains content parts "
    "(image/document, etc.)",
    lives="ullage.session.recall.dispatch",
)
def test_an_image_is_trimmed_like_a_text_and_comes_back_as_an_image():
    messages = histories.wire(
        "anthropic", [turn("look", items=1), turn(log("b"))]
    )
    messages[2]["content"][0]["content"] = [IMAGE]
    policy = output_cache(ToolOutputCacheConfig(context_budget_tokens=0))
    session = new_session(policy, "anthropic")
    view = session.fit(histories.request("anthropic", messages))["messages"]
    (trimmed,) = [event for event in session.events if event.kind == "pruned"]
    assert view[2]["content"][0]["content"] == [
        {"type": "text", "text": f"[tool output trimmed; ref={trimmed.ref}]"}
    ]
    call = {"type": "tool_use", "id": "toolu_9", "name": "tool_output_cache"}
    result = session.recall({**call, "input": {"ref_id": trimmed.ref}})
    assert result["content"][-1] == IMAGE
    assert session.output_ref(trimmed.ref).line_count is None


# 2.4: the window must be known


@pytest.mark.says(
    "output-cache-and-compaction",
    "2.4 Determining the context limit",
    "Use if you can get `max_input_tokens` or `max_tokens` from price/model information\n"
    "- Error (strict) if it cannot be obtained.",
    lives="ullage.core.tokens.catalog.lookup",
)
def test_a_model_nobody_knows_is_refused():
    known = Session("gpt-4.1", policy="output_cache")
    known.fit({"messages": [{"role": "user", "content": "Hello."}]})
    assert (
        known.window.context_tokens
        == lookup("gpt-4.1").window_tokens
        > 900_000
    )
    asked = {
        "model": "my-own",
        "messages": [{"role": "user", "content": "Hello."}],
    }
    with pytest.raises(ConfigError, match="no window is known for 'my-own'"):
        Session("my-own", policy="output_cache", format="openai-chat").fit(
            asked
        )
    limits = Limits(window_tokens=9_000)
    Session(
        "my-own", policy="output_cache", format="openai-chat", limits=limits
    ).fit(asked)


# bad outputs, and what a change would do


ODD = [
    "\ud800 alone " * 90,
    "\x00\x1b[31m" * 200,
    "a\r\nb\r\n" * 300,
    "👩‍👩‍👧e\u0301" * 200,
    "\n" * 3_000,
]


@pytest.mark.parametrize("text", ODD, ids=ascii)
def test_odd_text_is_cut_between_characters_and_comes_back(text):
    session, _, views = played(output_cache(TINY), "openai-chat", [turn(text)])
    (seen,) = shown(views[-1])
    assert seen.endswith(note(text))
    assert len(seen) < len(text)
    assert reading.follow(session, ref_of(text)) == text


@pytest.mark.parametrize("content", [None, [], [{"type": "text", "text": ""}]])
def test_an_output_that_is_nothing_is_left_as_it_is(content):
    messages = histories.wire("anthropic", [turn(log("a")), turn("b")])
    messages[2]["content"][0]["content"] = content
    asked = histories.request("anthropic", messages)
    assert (
        new_session(output_cache(TINY), "anthropic").fit(asked)["messages"]
        == messages
    )


def several(*outputs, **more):
    calls = tuple(
        histories.Call("bash", f"{n}", text) for n, text in enumerate(outputs)
    )
    return histories.Turn(calls=calls, **more)


SCENARIO = [
    several(log("a"), user="Look."),
    several("x" * 300, "ok"),
    several(log("d", 30)),
    several(log("e"), log("f"), log("g"), log("h")),
    several(log("i", 9), said="so " * 2_600),
]


def outcome(policy):
    """What a model sees and a session tells, with room and without."""
    told = []
    for window_tokens in (ROOMY, 3_000):
        try:
            session, _, views = played(
                policy, "openai-chat", SCENARIO, window_tokens
            )
        except OverLimitError as error:
            told.append(type(error))
        else:
            told.append(
                (
                    views,
                    [(event.kind, event.where) for event in session.events],
                )
            )
    return told


def test_every_setting_and_every_word_shows():
    alone = replace(TINY, compaction=CompactionConfig(enabled=False))
    expected = outcome(output_cache(alone))
    assert outcome(output_cache(alone)) == expected
    policies = dict(mutated(output_cache(alone)))
    policies |= {
        key: output_cache(other) for key, other in settings_mutated(alone)
    }
    assert len(policies) > 15
    assert [
        place
        for place, policy in policies.items()
        if outcome(policy) == expected
    ] == []
