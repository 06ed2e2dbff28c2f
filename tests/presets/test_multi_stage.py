"""`multi-stage-strategy.md`, in its order: the preset ``multi_stage``.

Its budget is proved in `tests/spend/test_budget.py`; its sliding window is a summary.
"""

import json
from itertools import pairwise
from operator import eq

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
    ConfigError,
    Limits,
    OverLimitError,
    Session,
    Usage,
    documents,
)
from ullage.core.history.canon import ref_of
from ullage.documents.presets.multi_stage import (
    MultiStageSettings,
    multi_stage,
)
from ullage.policy.stages.pressure import output_tokens
from ullage.wires import FORMATS

TINY = MultiStageSettings(
    SAFE_TRIGGER_TOKENS=3_000,
    MAX_RESULT_CHARS=600,
    MAX_LIST_ITEMS=5,
    PREVIEW_CHARS=40,
)
STILL = MultiStageSettings(COMPACTION_TRIGGER_TOKENS=0)
"""Without the sliding window, which keeps every view far below the brake."""
every = pytest.mark.parametrize("format", sorted(FORMATS))


def turn(output, **more):
    return histories.Turn(calls=(histories.Call("logs", "a", output),), **more)


def shown(view):
    """The text of every tool result of a view."""
    return [
        text
        for message in view
        for _, texts in reading.results(message)
        for text in texts
    ]


def read_on(text, offset=0):
    return f'get_continuation(tool_call_id="{ref_of(text)}", offset={offset})'


def compact(value):
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def test_the_presets_name_alone_reads_no_environment(monkeypatch):
    """Deviation: they are read where they are asked for."""
    monkeypatch.setenv("MAX_RESULT_CHARS", "600")
    monkeypatch.setenv("SAFE_TRIGGER_TOKENS", "3000")
    asked = histories.request(
        "openai-chat", histories.wire("openai-chat", [turn("x " * 900)])
    )
    by_name, read = (
        Session("gpt-4.1", policy="multi_stage"),
        documents.from_env("multi_stage"),
    )
    assert by_name.fit(asked)["messages"] == asked["messages"]
    assert (
        Session("gpt-4.1", policy=read).fit(asked)["messages"]
        != asked["messages"]
    )


# 1. The emergency brake


@pytest.mark.says(
    "multi-stage-strategy",
    "Emergency History Compaction (LLM Callback Level)",
    "**Trigger**: 850,000 tokens estimated payload.",
    lives="ullage.policy.stages.emergency",
    see="ullage replay --policy multi_stage runs",
)
@pytest.mark.says(
    "multi-stage-strategy",
    "Configuration",
    "`SAFE_TRIGGER_TOKENS` | `850,000` | Token count at which emergency compaction starts.",
    lives="ullage.documents.presets.multi_stage.MultiStageSettings",
)
def test_the_brake_is_at_850_000_tokens_of_a_window_of_a_million():
    """Gemini 2.5, outputs of the size that the document speaks of, usage reported each time."""
    line = "The tide came in, and the harbour master wrote it down again.\n"
    turns = [turn(f"{n}\n" + line * 3_200) for n in range(24)]
    messages = histories.wire("gemini", turns)
    session = Session("gemini-2.5-pro", policy=multi_stage(STILL))
    for length in range(1, len(messages) + 1, 2):
        view = session.fit(histories.request("gemini", messages[:length]))[
            "contents"
        ]
        if session.window.summaries:
            break
        assert view == messages[:length]
        assert session.window.estimate < 850_000
        session.observe(Usage(fresh_tokens=session.window.tokens))
    (event,) = [event for event in session.events if event.kind == "condensed"]
    assert event.tokens_before >= 850_000
    assert event.why == "the view had reached the 850,000 tokens of the brake"
    assert view[0] == messages[0]
    assert view[2:] == messages[length - 10 : length]
    assert length > 20


@pytest.mark.parametrize("more", [0, 1])
def test_it_acts_at_the_trigger_and_not_a_token_before(more):
    turns = [
        turn(f"{n} the tide\n" * 30, said="Let me look. " * 40)
        for n in range(8)
    ]
    session, messages, _ = played(multi_stage(), "openai-chat", turns)
    policy = multi_stage(
        MultiStageSettings(SAFE_TRIGGER_TOKENS=session.window.estimate + more)
    )
    cold = new_session(policy, "openai-chat")
    view = cold.fit(histories.request("openai-chat", messages))["messages"]
    assert (view == messages) == (more == 1)
    assert (not cold.window.summaries) == (more == 1)


def test_with_a_trigger_of_zero_only_the_hard_limit_counts():
    turns = [
        turn(f"{n} the tide\n" * 30, said="Let me look. " * 40)
        for n in range(8)
    ]
    off = multi_stage(MultiStageSettings(SAFE_TRIGGER_TOKENS=0))
    _, messages, views = played(off, "openai-chat", turns)
    assert views[-1] == messages
    assert played(off, "openai-chat", turns, 2_500)[0].window.summaries


thoughts = st.lists(
    st.builds(
        histories.Turn,
        user=st.none() | st.just("And now?"),
        said=st.sampled_from(("", "I think that it is the cache. " * 9)),
        calls=st.lists(
            st.builds(
                histories.Call,
                tool=st.just("logs"),
                argument=st.sampled_from(("a", "b")),
                output=st.sampled_from(("ok", "a line of the log\n" * 60)),
            ),
            min_size=1,
            max_size=3,
        ).map(tuple),
    ),
    min_size=8,
    max_size=14,
)


@pytest.mark.says(
    "multi-stage-strategy",
    "Emergency History Compaction (LLM Callback Level)",
    "Keep the System instructions and first User message.\n"
    "2. Keep the **10 most recent messages** (5 turns) in full.",
    lives="ullage.policy.stages.emergency",
)
@pytest.mark.parametrize("format", histories.APART)
def test_the_task_and_the_ten_newest_messages_stay_whole_and_wide_of_that_a_whole_turn(
    format,
):
    @given(thoughts)
    def proof(turns):
        session, messages, views = played(multi_stage(TINY), format, turns)
        told = [event for event in session.events if event.kind == "condensed"]
        summaries = session.window.summaries
        assert bool(summaries) == bool(told)
        if not summaries:
            return
        ((start, stop, _),) = summaries
        view = views[-1]
        assert start == 1
        assert view[0] == messages[0]
        tail = messages[stop:]
        whole = played(
            multi_stage(MultiStageSettings(MAX_RESULT_CHARS=600)),
            format,
            turns,
        )[2][-1]
        assert view[2:] == whole[stop:]
        assert len(tail) >= 10
        transcript = session.window.transcript
        assert transcript.may_cut(stop)

    proof()


def test_ten_messages_are_five_turns():
    """A call and its result in each: when the brake acts, neither more nor fewer stay."""
    turns = [
        turn(f"{n} the tide\n" * 30, said="Let me look. " * 40)
        for n in range(14)
    ]
    _, messages, views = played(multi_stage(TINY), "anthropic", turns)
    kept = [
        len(view) - 2
        for before, view in pairwise(views)
        if len(view) <= len(before)
    ]
    assert set(kept) == {10}
    asked = histories.request("anthropic", messages)
    assert (
        new_session(multi_stage(TINY), "anthropic").fit(asked)["system"]
        == asked["system"]
    )


def test_they_stay_whole_wherever_they_and_the_account_fit_the_hard_limit():
    """The same view in a window without end, and in one that it fills nearly."""
    policy = multi_stage(MultiStageSettings(SAFE_TRIGGER_TOKENS=2_200))
    turns = [
        turn(f"{n} the tide\n" * 30, said="4 7 1 9 " * 40) for n in range(20)
    ]
    session, messages, views = played(policy, "openai-chat", turns)
    account = views[-1][1]["content"]
    assert {len(view) for view in views[6:]} == {1 + 1 + 10}
    assert views[-1][2:] == messages[-10:]
    assert len(account) <= 2_200 * 0.10 * 3  # characters, three a token
    limit_tokens = int(session.window.estimate / 0.80)
    assert (
        session.window.estimate - session.window.meter.message(account)
        < limit_tokens * 0.73
    )
    assert (
        played(policy, "openai-chat", turns, limit_tokens + 1_000)[2][-1]
        == views[-1]
    )


def test_no_more_than_fits_is_kept_whole():
    """Ten messages that are over the hard limit together: the newest of them stay."""
    turns = [
        turn("the tide came in\n" * 35, said="Let me look. " * 200)
        for n in range(9)
    ]
    session, messages, views = played(
        multi_stage(TINY), "openai-chat", turns, 5_000
    )
    ((_, stop, _),) = session.window.summaries
    assert 2 <= len(messages) - stop < 10
    assert views[-1][2:] == messages[stop:]
    assert session.window.estimate <= session.window.limit_tokens


@pytest.mark.says(
    "multi-stage-strategy",
    "Emergency History Compaction (LLM Callback Level)",
    'Condense the entire "middle" history into a bulleted summary of tool calls and key thoughts.',
    lives="ullage.policy.stages.account",
)
def test_the_middle_is_a_list_of_tool_calls_and_thoughts():
    said = "I think that it is the cache."
    turns = [
        turn("ok", said=said),
        turn("a line of the log\n" * 30),
        turn("three pods restarted", user="Look at the pods too."),
        *(
            turn(f"{n} the tide\n" * 30, said="Let me look. " * 60)
            for n in range(9)
        ),
    ]
    _, _, views = played(multi_stage(TINY), "openai-chat", turns)
    account = next(
        view[1]["content"]
        for view in views
        if len(view) > 1 and "- " in str(view[1])
    )
    ref = ref_of("a line of the log\n" * 30)
    assert account.split("\n")[1:6] == [
        f"- assistant: {said}",
        '- logs {"path": "a"} → ok',
        f'- logs {{"path": "a"}} → 540 characters, ref={ref}',
        "- user: Look at the pods too.",
        '- logs {"path": "a"} → three pods restarted',
    ]


@pytest.mark.says(
    "multi-stage-strategy",
    "Emergency History Compaction (LLM Callback Level)",
    'In `model_callbacks.py`, we implement an "Emergency Brake" to prevent '
    "`400 INVALID_ARGUMENT` errors when the LLM's hard limit is approached.",
    lives="ullage.policy.stages.emergency",
)
@pytest.mark.says(
    "multi-stage-strategy",
    "Emergency History Compaction (LLM Callback Level)",
    "**Benefit**: Prevents the agent from crashing "
    "while retaining the high-level progress of the investigation.",
    lives="ullage.policy.stages.emergency",
)
def test_an_investigation_goes_on_where_the_provider_would_refuse_it(serve):
    """Gemini through its own SDK; the provider refuses what is over 12,000 tokens."""
    replies = [
        Reply(f"Step {n}.", [Call("read_file", {"path": f"{n}.log"})])
        for n in range(12)
    ]
    policy = multi_stage(MultiStageSettings(SAFE_TRIGGER_TOKENS=8_000))

    def run(name, arguments):
        return (
            f"{arguments['path']} "
            + "2026-11-21 INFO the tide came in\n" * 120
        )

    refusing = serve("gemini", [*replies, "Found it."], limit_tokens=12_000)
    with pytest.raises(Exception, match="400 INVALID_ARGUMENT"):
        loop(refusing, None, run)

    server = serve(
        "gemini", [*replies, "Found it."], limit_tokens=12_000, strict=True
    )
    limits = Limits(window_tokens=20_000)
    session = Session(
        "gemini-2.5-pro", policy=policy, format="gemini", limits=limits
    )
    messages = loop(server, session, run)
    assert messages[-1].parts[0].text == "Found it."
    assert "condensed" in {event.kind for event in session.events}
    account = server.requests[-1].body["contents"][1]["parts"][0]["text"]
    assert "- assistant: Step 0." in account
    assert '- read_file {"path": "0.log"} → ' in account.replace('":"', '": "')


# 2. Tool output truncation


@pytest.mark.says(
    "multi-stage-strategy",
    "2. Tool Output Truncation",
    "**Limit**: 200,000 characters (~50k tokens) per tool result.",
    lives="ullage.documents.presets.multi_stage.MultiStageSettings",
)
@pytest.mark.says(
    "multi-stage-strategy",
    "Configuration",
    "`MAX_RESULT_CHARS` | `200,000` | Max characters for a single tool output result.",
    lives="ullage.documents.presets.multi_stage.MultiStageSettings",
)
def test_200_000_characters_stay_and_are_some_50_000_tokens():
    line = "The tide came in, and the harbour master wrote it down again.\n"
    text = (line * 5_000)[:200_000]
    session, messages, views = played(multi_stage(), "gemini", [turn(text)])
    assert views[-1] == messages
    assert session.window.total(output_tokens) == pytest.approx(
        50_000, rel=0.2
    )
    longer = text + line * 5
    (seen,) = shown(played(multi_stage(), "gemini", [turn(longer)])[2][-1])
    assert seen.startswith(text)
    assert len(seen) < len(longer)


@pytest.mark.says(
    "multi-stage-strategy",
    "2. Tool Output Truncation",
    "**Strings**: Truncated with a visible indicator.",
    lives="ullage.policy.stages.shapes",
)
@every
def test_a_string_ends_in_what_was_left_out_and_how_to_read_on(format):
    text = "a log line, and not the last one\n" * 50
    session, _, views = played(multi_stage(TINY), format, [turn(text)])
    assert shown(views[-1]) == [
        f"{text[:600]}\n[truncated: 600 of 1,650 characters shown. Read on: {read_on(text, 600)}]"
    ]
    assert reading.follow(session, ref_of(text), 600) == text[600:]


@pytest.mark.says(
    "multi-stage-strategy",
    "2. Tool Output Truncation",
    "**Lists**: Capped at the first 500 items.",
    lives="ullage.policy.stages.shapes",
)
@every
def test_a_list_keeps_its_first_500_items_and_says_so_in_one_more(format):
    items = [{"n": n, "x": 1.0, "name": f"ß{n}"} for n in range(520)]
    text = compact(items)
    assert shown(
        played(multi_stage(), format, [turn(compact(items[:500]))])[2][-1]
    ) == [compact(items[:500])]
    (seen,) = shown(played(multi_stage(), format, [turn(text)])[2][-1])
    notice = (
        f"[truncated: the first 500 of 520 items. All of it: {read_on(text)}]"
    )
    assert seen == compact([*items[:500], notice])


def test_of_long_items_as_many_stay_as_fit():
    items = ["x" * 90 for _ in range(9)]
    (seen,) = shown(
        played(multi_stage(TINY), "openai-chat", [turn(compact(items))])[2][-1]
    )
    *kept, notice = json.loads(seen)
    assert kept == items[: len(kept)]
    assert notice.startswith(f"[truncated: the first {len(kept)} of 9 items.")
    assert len(kept) == 5
    assert len(seen) <= 600
    longer = [item + "x" * 20 for item in items]
    (seen,) = shown(
        played(multi_stage(TINY), "openai-chat", [turn(compact(longer))])[2][
            -1
        ]
    )
    assert len(json.loads(seen)) == 4 + 1
    assert 600 - 113 < len(seen) <= 600


@pytest.mark.says(
    "multi-stage-strategy",
    "2. Tool Output Truncation",
    "**Dicts**: If too large, replaced with a preview and an error message "
    "suggesting better filtering.",
    lives="ullage.policy.stages.shapes",
)
@every
def test_a_dict_is_replaced_by_advice_and_a_preview(format):
    value = {"rows": ["the tide came in"] * 80, "more": False}
    text = compact(value)
    (seen,) = shown(played(multi_stage(TINY), format, [turn(text)])[2][-1])
    error = (
        "the result has 1,543 characters and the limit is 600. Ask for less: use a filter, "
        "a shorter time range, fewer fields or a lower limit. "
        f"All of it: {read_on(text)}"
    )
    assert json.loads(seen) == {"error": error, "preview": text[:40]}


def test_a_list_of_which_no_item_fits_is_a_list_of_that_advice():
    text = compact(["x" * 900, "y"])
    (seen,) = shown(
        played(multi_stage(TINY), "openai-chat", [turn(text)])[2][-1]
    )
    ((advice),) = json.loads(seen)
    assert set(advice) == {"error", "preview"}


def test_the_texts_of_one_result_share_its_characters():
    text = "a log line\n" * 40
    calls = (histories.Call("logs", "a", text, items=3),)
    view = played(
        multi_stage(TINY), "anthropic", [histories.Turn(calls=calls)]
    )[2][-1]
    seen = shown(view)
    assert seen[0] == text
    assert [len(each.partition("\n[truncated")[0]) for each in seen] == [
        440,
        160,
        0,
    ]


def test_items_are_shown_as_they_were_written():
    """Numbers beyond 64 bits, spaces, escapes: no value is written anew."""
    text = (
        '[ 1.0 ,  123456789012345678901234567890, {"a" :"\\u00e9\\/"}, 1e5, "x", "y" '
        + " " * 1_100
    )
    (seen,) = shown(
        played(multi_stage(TINY), "openai-chat", [turn(text + "]")])[2][-1]
    )
    head = (
        '[1.0,123456789012345678901234567890,{"a" :"\\u00e9\\/"},1e5,"x",'
        '"[truncated: the first 5 '
    )
    assert seen.startswith(head)


values = st.recursive(
    st.integers()
    | st.text(max_size=40)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.none(),
    lambda inner: (
        st.lists(inner, max_size=8)
        | st.dictionaries(st.text(max_size=5), inner)
    ),
    max_leaves=60,
)


@every
def test_what_was_a_list_or_a_dict_is_one_still_and_comes_back(format):
    @given(st.lists(values, max_size=9).map(lambda some: some * 5) | values)
    def proof(value):
        text = compact(value)
        session, messages, views = played(
            multi_stage(TINY), format, [turn(text)]
        )
        (original,), (seen,) = shown(messages), shown(views[-1])
        if seen == original:
            return
        assert len(seen) < len(original)
        if isinstance(value, (list, dict)):
            assert type(json.loads(seen)) is type(value)
        assert reading.follow(session, ref_of(original)) == original

    proof()


# The document's host: Google ADK, whose tools give Gemini values under one key


def test_under_gemini_a_list_stays_a_list_and_a_dict_a_dict(serve):
    """The real SDK's own types go in; what the provider gets is told by its own JSON."""
    from google.genai import types

    rows = [{"row": n} for n in range(700)]
    wide = {"rows": "x" * 250_000}
    results = [
        {"result": rows},
        {"result": wide},
        wide,
        {"result": "line\n" * 60_000},
    ]
    contents = [
        types.Content(role="user", parts=[types.Part(text="Find the fault.")])
    ]
    calls = [
        types.Part.from_function_call(name="logs", args={"n": n})
        for n in range(4)
    ]
    answers = [
        types.Part.from_function_response(name="logs", response=r)
        for r in results
    ]
    contents += [
        types.Content(role="model", parts=calls),
        types.Content(role="user", parts=answers),
    ]
    server = serve("gemini", ["Found it."])
    session = Session("gemini-2.5-flash", policy="multi_stage")
    request = {"model": "gemini-2.5-flash", "contents": contents}
    reply = server.client().models.generate_content(**session.fit(request))
    session.observe(reply)
    sent = server.requests[0].body["contents"][2]["parts"]
    listed, inner, bare, text = (
        part["functionResponse"]["response"] for part in sent
    )
    assert listed["result"][:500] == rows[:500]
    assert listed["result"][500].startswith(
        "[truncated: the first 500 of 700 items. All of it: "
    )
    assert len(listed["result"]) == 501
    assert set(inner["result"]) == set(bare) == {"error", "preview"}
    assert (
        inner["result"]["preview"] == bare["preview"] == compact(wide)[:2_000]
    )
    assert text["result"].startswith(
        "line\n" * 40_000 + "\n[truncated: 200,000 of 300,000 "
    )
    assert [event.kind for event in session.events] == [
        "joined",
        *["truncated"] * 4,
        "observed",
    ]
    assert answers[0].function_response.response["result"] == rows


# Configuration


@pytest.mark.parametrize(
    ("trigger", "most", "settings"),
    [
        (None, None, {}),
        ("850,000", "200,000", {}),
        ("", " ", {}),
        ("0", "600", {"SAFE_TRIGGER_TOKENS": 0, "MAX_RESULT_CHARS": 600}),
        (
            "3_000",
            "1,000",
            {"SAFE_TRIGGER_TOKENS": 3_000, "MAX_RESULT_CHARS": 1_000},
        ),
    ],
)
def test_the_environment_is_read_once_under_the_documents_names(
    monkeypatch, trigger, most, settings
):
    for name, text in (
        ("SAFE_TRIGGER_TOKENS", trigger),
        ("MAX_RESULT_CHARS", most),
    ):
        monkeypatch.delenv(name, raising=False)
        if text is not None:
            monkeypatch.setenv(name, text)
    policy = documents.from_env("multi_stage")
    monkeypatch.setenv("MAX_RESULT_CHARS", "1")
    expected = multi_stage(MultiStageSettings(**settings))
    assert list(outcomes(policy)) == list(outcomes(expected))


@pytest.mark.parametrize("text", ["850k", "-1", "8.5e5"])
def test_nonsense_in_the_environment_is_refused_by_name(monkeypatch, text):
    monkeypatch.setenv("SAFE_TRIGGER_TOKENS", text)
    with pytest.raises(ConfigError, match="SAFE_TRIGGER_TOKENS") as caught:
        documents.from_env("multi_stage")
    assert text not in str(caught.value)


def test_only_a_preset_whose_document_names_variables_is_read_from_them(
    monkeypatch,
):
    monkeypatch.setenv("MAX_RESULT_CHARS", "0")
    with pytest.raises(ConfigError, match="MAX_RESULT_CHARS"):
        documents.from_env("multi_stage")
    with pytest.raises(ConfigError, match="names no environment variables"):
        documents.from_env("output_cache")
    with pytest.raises(ConfigError, match="has no settings"):
        documents.from_env("default")


@pytest.mark.parametrize(
    "given",
    [
        {"SAFE_TRIGGER_TOKENS": -1},
        {"MAX_RESULT_CHARS": 0},
        {"MAX_RESULT_CHARS": "200,000"},
        {"MAX_LIST_ITEMS": 1.5},
        {"PREVIEW_CHARS": None},
        {"max_result_chars": 7},
    ],
    ids=str,
)
def test_a_value_that_is_none_is_refused_by_its_key(given):
    (key,) = given
    with pytest.raises(ConfigError, match=key):
        documents.load("multi_stage", given)


@pytest.mark.parametrize("text", ["x" * 601, "[1,2,3,4,5,6,7]"])
def test_what_would_be_no_shorter_is_left_whole(text):
    """Over 600 characters, and over 5 items: the indicator is longer than what it spares."""
    _, messages, views = played(multi_stage(TINY), "openai-chat", [turn(text)])
    assert views[-1] == messages


def test_a_preview_is_no_longer_than_a_result_may_be():
    policy = multi_stage(
        MultiStageSettings(MAX_RESULT_CHARS=300, PREVIEW_CHARS=2_000)
    )
    (seen,) = shown(
        played(policy, "openai-chat", [turn(compact({"a": "x" * 3_000}))])[2][
            -1
        ]
    )
    assert len(json.loads(seen)["preview"]) == 300


# Odd outputs, and what a change would do

ODD = {
    "surrogates": "[" + ",".join(['"\ud800"'] * 400) + "]",
    "NULs": "\x00\x1b[31m" * 300,
    "CRLF": "a\r\nb\r\n" * 300,
    "graphemes": "👩‍👩‍👧e\u0301" * 200,
    "brackets": "[" * 300 + " " * 900,
    "no JSON": "{'single': 'quotes'} " * 60,
    "NaN": "[" + "NaN, " * 400 + "1]",
}


@pytest.mark.parametrize("name", ODD)
@every
def test_odd_text_is_cut_between_characters_and_comes_back(name, format):
    text = ODD[name]
    session, messages, views = played(multi_stage(TINY), format, [turn(text)])
    (original,), (seen,) = shown(messages), shown(views[-1])
    assert "[truncated: " in seen
    assert len(seen) < len(original)
    assert reading.follow(session, ref_of(original)) == original


@pytest.mark.parametrize(
    "value", [None, (n for n in range(3)), object()], ids=type
)
def test_a_result_that_is_no_json_is_an_error_that_names_its_place(value):
    from ullage import FormatError

    messages = histories.wire("gemini", [turn("ok")])
    messages[2]["parts"][0]["functionResponse"]["response"] = {"result": value}
    session = new_session(multi_stage(TINY), "gemini")
    if value is None:
        session.fit(histories.request("gemini", messages))
        return
    with pytest.raises(FormatError, match=r"contents\[2\]"):
        session.fit(histories.request("gemini", messages))


def several(*outputs, **more):
    calls = tuple(
        histories.Call("logs", f"{n}", text) for n, text in enumerate(outputs)
    )
    return histories.Turn(calls=calls, **more)


CHOICES = [
    f"I chose shard {n} because the tide is high there at night."
    for n in range(20)
]
SCENARIO = [
    several("ok", said="And so on. " * 100),
    several(*("the tide\n" * 60 for _ in range(30))),
    several("a log line\n" * 90, compact(list(range(700))), user="Look."),
    several(compact({"a": ["the tide"] * 90}), "ok", user="And the rest?"),
    *(
        several(f"{n} the tide\n" * 30, said=" ".join(CHOICES))
        for n in range(6)
    ),
    *(
        several("ok", user=f"Never forget this, number {n}. " * 30)
        for n in range(10)
    ),
    *(
        several(f"{n} the tide\n" * 30, said="Let me look. " * 60)
        for n in range(6)
    ),
    several(*("the tide\n" * 60 for _ in range(30))),
    several("x" * 9_000, said="so " * 2_000),
    *(several("ok", said=f"{n} and so on. " * 400) for n in range(9)),
    *(several("ok", said=f"{n} and so on. " * 90) for n in range(9)),
    several("ok", user="Keep to all of this. " * 900),
    *(several("ok", said=f"{n} and so on. " * 90) for n in range(9)),
]
SLIDING = replace(
    TINY,
    SAFE_TRIGGER_TOKENS=5_000,
    COMPACTION_TRIGGER_TOKENS=3_000,
    COMPACTION_BUDGET_TOKENS=6_000,
)


def written(asked):
    """A writer that tells what it was asked; now and then it fails unless it is reminded."""
    told = (asked.system, *asked.texts, str(asked.most_tokens), asked.model)
    digest = ref_of("".join(told))
    if digest[0] > "f" and "could not be used" not in asked.texts[-1]:
        return "I would rather not."
    return f"<retain>{digest}</retain><summary>{digest} it is</summary>"


def outcomes(policy):
    """What a model sees and a session tells: with the window and without, with room and none."""
    for each in (policy, replace(policy, under_pressure=())):
        for window_tokens in (ROOMY, 6_000):
            yield _outcome(each, window_tokens)


def _outcome(policy, window_tokens):
    try:
        session, _, views = played(
            policy, "openai-chat", SCENARIO, window_tokens, summariser=written
        )
    except OverLimitError as error:
        return type(error)
    return views, [(event.kind, event.where) for event in session.events]


def test_every_setting_and_every_word_shows():
    expected = list(outcomes(multi_stage(SLIDING)))
    assert list(outcomes(multi_stage(SLIDING))) == expected
    policies = dict(mutated(multi_stage(SLIDING)))
    policies |= {
        key: multi_stage(other) for key, other in settings_mutated(SLIDING)
    }
    assert len(policies) > 30
    unseen = [
        place
        for place, policy in policies.items()
        if all(map(eq, outcomes(policy), expected))  # most show at once
    ]
    assert unseen == []
