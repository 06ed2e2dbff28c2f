"""`token-budget-compaction.md`, in its own order, on the wire it was written for.

`flow` is the document's agent, written down from its text alone; the preset is measured
against it on generated conversations.
"""

import contextlib
import copy
import io
import json
import re
import sys
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from lab import reading
from tests import histories
from tests.properties.test_gates import boundaries
from tests.servers import Call, Reply
from tests.servers.loops import loop
from ullage import (
    ConfigError,
    Limits,
    Policy,
    Session,
    SqliteStore,
    Usage,
    documents,
)
from ullage.documents.presets.token_budget import (
    MARKER,
    TokenBudgetSettings,
    token_budget,
)
from ullage.policy.stages.placeholders import bare_placeholder
from ullage.policy.stages.pressure import (
    newest_answered,
    newest_batch,
    over_share,
)
from ullage.policy.stages.prune import results_only, strings_only
from ullage.wires import FORMATS

DOCUMENT = "token-budget-compaction"
FORMAT_NAMES = sorted(FORMATS)
REF_LINE = re.compile(r"\n\n\[ref=[0-9a-z]{16}, [\d,]+ characters in all\]\n")
LONG = "one line of a page of results\n" * 80
PICTURE = {
    "type": "image",
    "source": {"type": "base64", "media_type": "image/png", "data": "aGk="},
}


# ── conversations ────────────────────────────────────────────────────────────────────────


def step(number, *contents):
    """One call for each content, and the message with their results."""
    ids = [f"toolu_{number}_{n}" for n in range(len(contents))]
    calls = [
        {"type": "tool_use", "id": id, "name": "gmail_read", "input": {}}
        for id in ids
    ]
    results = [
        {"type": "tool_result", "tool_use_id": id, "content": content}
        for id, content in zip(ids, contents, strict=True)
    ]
    return [
        {"role": "assistant", "content": calls},
        {"role": "user", "content": results},
    ]


def steps(*batches):
    """A task, and what came of it: each batch a tuple of contents."""
    task = [{"role": "user", "content": "Find me a job."}]
    return task + [
        m for number, batch in enumerate(batches) for m in step(number, *batch)
    ]


def request(messages):
    return {
        "model": "claude-opus-4-8",
        "max_tokens": 1_000,
        "messages": messages,
    }


def new_session(policy="token_budget", **more):
    more = {
        "format": "anthropic",
        "limits": Limits(window_tokens=500_000),
        **more,
    }
    return Session("claude-opus-4-8", policy=policy, **more)


ANSWER = [
    {"role": "assistant", "content": "Two of them fit."},
    {"role": "user", "content": "Go on."},
]


def after_report(messages, reported, policy="token_budget", **more):
    """The next view after a request that was reported to be so long, and its session."""
    session = new_session(policy, **more)
    session.fit(request(messages))
    session.observe(
        reported
        if isinstance(reported, Usage)
        else Usage(fresh_tokens=reported)
    )
    return session.fit(request([*messages, *ANSWER])), session


def believed(session):
    """The least input tokens that are believed of the request just fitted."""
    return session.window.estimate // 10


def contents(view):
    """Every result of a view, in order."""
    return [
        block["content"]
        for message in view["messages"]
        if message["role"] == "user" and isinstance(message["content"], list)
        for block in message["content"]
    ]


def without_refs(content):
    """What is shown, as the document would have it: without our line that names the ref."""
    return REF_LINE.sub("", content) if isinstance(content, str) else content


def is_compacted(content):
    return isinstance(content, str) and content.endswith(MARKER)


def notes(session):
    return [
        event.why for event in session.events if event.kind == "diagnostic"
    ]


# ── 3. Token Budget Threshold (Chosen) ───────────────────────────────────────────────────


@pytest.mark.says(
    "token-budget-compaction",
    "3. Token Budget Threshold (Chosen)",
    "Short conversations: zero impact",
    lives="ullage.documents.presets.token_budget",
    see="ullage fit request.json --policy token_budget",
)
@pytest.mark.parametrize("format", FORMAT_NAMES)
@given(turns=histories.histories, reported=st.integers(1, 40_000))
def test_up_to_the_budget_the_request_goes_out_as_it_came(
    format, turns, reported
):
    """Equal, each message the caller's own object, no tool added, nothing said."""
    messages = histories.wire(format, turns)
    wire = FORMATS[format]
    session = new_session(
        format=format, limits=Limits(window_tokens=2_000_000)
    )
    for length in boundaries(format, messages):
        asked = histories.request(format, messages[:length])
        view = session.fit(asked)
        assert view == asked
        assert all(
            a is b for a, b in zip(wire.history(view), messages, strict=False)
        )
        session.observe(Usage(fresh_tokens=max(reported, believed(session))))
    told = {event.kind for event in session.events}
    assert told <= {"observed", "unknown_model", "undercounted"}


@pytest.mark.says(
    "token-budget-compaction",
    "3. Token Budget Threshold (Chosen)",
    "Only truncate old tool results when a budget is exceeded.",
    lives="ullage.policy.stages.pressure.over_reported",
)
@pytest.mark.says(
    "token-budget-compaction",
    "3. Token Budget Threshold (Chosen)",
    "Long conversations: gradual, targeted reduction",
    lives="ullage.documents.presets.token_budget",
)
def test_a_long_conversation_is_reduced_result_by_result():
    """One more result at each turn over the budget; all that is no old result stays."""
    messages = steps(*[(f"{n} {LONG}",) for n in range(6)])
    session, seen = new_session(), []
    for length in range(1, len(messages) + 1, 2):
        view = session.fit(request(messages[:length]))
        session.observe(Usage(fresh_tokens=length * 6_000))
        seen.append(sum(map(is_compacted, contents(view))))
        rest = [
            n
            for n, m in enumerate(messages[:length])
            if view["messages"][n] is m
        ]
        assert len(rest) == length - seen[-1]
    assert seen == [0, 0, 0, 0, 2, 3, 4]


@pytest.mark.says(
    "token-budget-compaction",
    "3. Token Budget Threshold (Chosen)",
    "No extra API calls",
    lives="ullage.documents.presets.token_budget",
)
@pytest.mark.says(
    "token-budget-compaction",
    "Data Flow",
    "stream_chat() returns input_tokens",
    lives="ullage.session.session.Session.observe",
)
def test_through_the_vendors_sdk_there_is_one_call_for_each_reply(serve):
    """And what is sent is byte for byte what would have been, until the budget is exceeded."""
    script = [
        Reply(calls=[Call("read_file", {"path": f"{n}.html"})])
        for n in range(4)
    ]
    plain = serve("anthropic", [*script, "Done."])
    loop(plain, None, lambda name, arguments: arguments["path"] + LONG)
    server = serve("anthropic", [*script, "Done."], strict=True)
    session = new_session(
        token_budget(TokenBudgetSettings(input_token_budget=2_000))
    )
    history = loop(
        server, session, lambda name, arguments: arguments["path"] + LONG
    )
    assert len(server.requests) == len(plain.requests) == 5
    tokens = [body["usage"]["input_tokens"] for body in server.answered]
    assert [count > 2_000 for count in tokens] == [
        False,
        False,
        False,
        True,
        False,
    ]
    for sent, unfitted in zip(
        server.requests[:4], plain.requests, strict=False
    ):
        assert sent.raw == unfitted.raw
    assert [
        is_compacted(text) for text in contents(server.requests[4].body)
    ] == [
        1,
        1,
        0,
        0,
    ]
    assert [
        is_compacted(text) for text in contents({"messages": history})
    ] == [
        0,
        0,
        0,
        0,
    ]
    assert notes(session) == [
        f"Note: Compacted 2 old tool result(s) — input tokens ({tokens[3]:,}) "
        "exceeded budget (2,000)"
    ]


# ── Trigger Condition ────────────────────────────────────────────────────────────────────

OLD = steps((LONG,), (LONG + "2",), (LONG + "3",))


@pytest.mark.says(
    "token-budget-compaction",
    "Trigger Condition",
    """if self._input_token_budget > 0 and input_tokens > self._input_token_budget:
           self._compact_old_tool_results(input_tokens)""",
    lives="ullage.policy.stages.pressure.over_reported",
)
@pytest.mark.says(
    "token-budget-compaction", "Data Flow", "input_tokens > budget?"
)
@pytest.mark.says("token-budget-compaction", "Data Flow", "no → do nothing")
@pytest.mark.parametrize(
    ("reported", "compacts"),
    [
        (40_000, False),
        (40_001, True),
        (Usage(fresh_tokens=12, cache_read_tokens=40_000), True),
        (
            Usage(
                fresh_tokens=12,
                cache_write_tokens=30_000,
                cache_read_tokens=10_000,
            ),
            True,
        ),
        (Usage(fresh_tokens=40_000, output_tokens=9_000), False),
    ],
    ids=[
        "at the budget",
        "over it",
        "cached tokens are input",
        "written ones too",
        "no output",
    ],
)
def test_the_whole_reported_prompt_is_what_counts(reported, compacts):
    view, _ = after_report(OLD, reported)
    assert any(map(is_compacted, contents(view))) == compacts


@pytest.mark.parametrize("reported", [40_001, 10_000_000])
def test_a_budget_of_0_never_acts(reported):
    view, session = after_report(
        OLD, reported, token_budget(TokenBudgetSettings(input_token_budget=0))
    )
    assert view == request([*OLD, *ANSWER])
    assert notes(session) == []


@pytest.mark.says(
    "token-budget-compaction",
    "Trigger Condition",
    "After each `stream_chat()` call, the agent checks:",
    lives="ullage.policy.stages.pressure.newest_answered",
)
def test_the_check_is_that_of_the_moment_after_the_reply():
    """What the reply's own tools bring comes later; what it had just read is not yet old."""
    session = new_session()
    session.fit(request(OLD))
    session.observe(Usage(fresh_tokens=45_231))
    view = session.fit(request([*OLD, *step(3, LONG + "4")]))
    assert [is_compacted(text) for text in contents(view)] == [
        True,
        True,
        False,
        False,
    ]


def test_the_same_request_again_is_judged_as_it_was():
    """Not by our estimate: the last report still is the last."""
    messages = steps(
        *[(f"{n} " + "a word or two " * 4_000,) for n in range(5)]
    )
    session = new_session()
    for length in range(1, len(messages), 2):
        session.fit(request(messages[:length]))
        session.observe(Usage(fresh_tokens=believed(session)))
    asked = request(messages)
    assert session.fit(asked) == session.fit(asked) == asked
    asked = request([*messages, {"role": "user", "content": "Are you there?"}])
    assert session.fit(asked) == asked
    assert session.window.estimate > 40_000


def test_without_any_report_the_estimate_of_the_view_stands_in():
    """Deviation: a host that never calls ``observe`` is kept within the budget all the same."""
    messages = steps(
        *[(f"{n} " + "a word or two " * 4_000,) for n in range(5)]
    )
    session = new_session()
    view = session.fit(request([*messages, *ANSWER]))
    assert [is_compacted(text) for text in contents(view)] == [True] * 3 + [
        False
    ] * 2
    assert session.window.estimate < 40_000


def test_another_process_acts_on_the_report_that_this_one_got(tmp_path):
    file = tmp_path / "kept.sqlite"
    with new_session(store=SqliteStore(file)) as session:
        session.fit(request(OLD))
        session.observe(Usage(fresh_tokens=45_231))
    asked = request([*OLD, *ANSWER])
    with new_session(store=SqliteStore(file)) as session:
        view = session.fit(asked)
        assert [is_compacted(text) for text in contents(view)] == [
            True,
            True,
            False,
        ]
    with new_session(store=SqliteStore(file)) as session:
        assert session.fit(asked) == view
        assert notes(session) == [], "what was decided once is not told twice"


def test_a_branch_goes_by_the_reports_on_its_own_line():
    session = new_session()
    first, second = steps((LONG,), (LONG + "2",)), step(2, LONG + "3")
    session.fit(request(first))
    session.observe(Usage(fresh_tokens=10_000))
    session.fit(request([*first, *second]))
    session.observe(Usage(fresh_tokens=45_231))
    long = session.fit(request([*first, *second, *ANSWER]))
    assert sum(map(is_compacted, contents(long))) == 2
    rewound = request([*first, *ANSWER])
    assert session.fit(rewound) == rewound
    assert session.fit(request([*first, *second, *ANSWER])) == long


# ── What Gets Compacted ──────────────────────────────────────────────────────────────────


def flow(messages, reported, budget=40_000, retained_chars=500):
    """The document's method on Anthropic messages, from its text: they are changed in place."""
    if not (budget > 0 and reported > budget):
        return 0
    found = [
        m
        for m in messages
        if m["role"] == "user" and isinstance(m["content"], list)
    ]
    count = 0
    for message in found[:-1]:
        for block in message["content"]:
            content = block["content"]
            if not isinstance(content, str) or content.endswith(MARKER):
                continue
            if len(content) <= retained_chars:
                continue
            block["content"] = content[:retained_chars] + MARKER
            count += 1
    return count


texts = st.one_of(
    st.text("abc ", max_size=500),
    st.builds(
        lambda text, n: text * n,
        st.text("abc\n", min_size=8, max_size=8),
        st.integers(90, 900),
    ),
)
given_contents = st.one_of(
    texts,
    texts.map(lambda text: f"{text}\n{MARKER}"),
    texts.map(lambda text: [{"type": "text", "text": text}, PICTURE]),
)
batches = st.lists(
    st.lists(given_contents, min_size=1, max_size=3), min_size=1, max_size=7
)


@pytest.mark.says(
    "token-budget-compaction",
    "Data Flow",
    """yes
       Find tool-result messages
       Skip most recent tool-result message
       For each older tool-result block:
         - Skip if already truncated
         - Skip if short enough
         - Truncate to retention_chars + marker
       Print diagnostic to stderr""",
    lives="ullage.documents.presets.token_budget",
)
@given(batches=batches, data=st.data())
def test_every_request_is_the_one_the_documents_agent_would_send(
    batches, data
):
    """Turn by turn, with any reports: but for the line with the ref, the very same messages."""
    theirs, ours = (
        [{"role": "user", "content": "Find me a job."}],
        steps(*batches),
    )
    session, told = new_session(), []
    for number, batch in enumerate([*batches, None]):
        with contextlib.redirect_stderr(io.StringIO()) as stderr:
            view = session.fit(request(ours[: 2 * number + 1]))
        assert stderr.getvalue() == "".join(told)
        shown = [without_refs(content) for content in contents(view)]
        assert shown == contents({"messages": theirs})
        reported = max(data.draw(st.integers(1, 80_000)), believed(session))
        session.observe(Usage(fresh_tokens=reported))
        count = flow(theirs, reported)
        told = [
            f"Note: Compacted {count} old tool result(s) — input tokens ({reported:,}) "
            "exceeded budget (40,000)\n"
        ][: bool(count)]
        if batch is not None:
            theirs += copy.deepcopy(step(number, *batch))


def test_of_a_history_seen_for_the_first_time_one_note_says_that_its_figure_is_an_estimate():
    """Deviation: at dozens of its places something was cut, and nothing was reported."""
    messages = steps(*[(f"{number} {LONG * 12}",) for number in range(40)])
    session = new_session()
    with contextlib.redirect_stderr(io.StringIO()) as stderr:
        shown = contents(session.fit(request(messages)))
    (note,) = notes(session)
    assert stderr.getvalue() == f"{note}\n"
    assert note.startswith(
        f"Note: Compacted {sum(map(is_compacted, shown))} old tool result(s)"
    )
    assert note.endswith(
        "exceeded budget (40,000); nothing was reported, this is an estimate"
    )


@pytest.mark.says(
    "token-budget-compaction",
    "What Gets Compacted",
    'Finds all tool-result messages — messages where `role == "user"` and `content` is a list '
    "of `tool_result` dicts",
    lives="ullage.policy.stages.prune.strings_only",
)
@pytest.mark.says(
    "token-budget-compaction",
    "What Gets Compacted",
    "For each older tool-result block:",
    lives="ullage.policy.stages.prune.strings_only",
)
def test_every_older_block_of_results_and_nothing_else_is_looked_at():
    messages = steps((LONG, LONG + "2"), (LONG + "3",), (LONG + "4",))
    messages[0]["content"] = LONG * 3
    messages[1]["content"].insert(0, {"type": "text", "text": LONG})
    messages[1]["content"][1]["input"] = {"query": LONG}
    view, _ = after_report(messages, 45_231)
    assert [is_compacted(text) for text in contents(view)] == [
        True,
        True,
        True,
        False,
    ]
    untouched = [
        view["messages"][n] is m for n, m in enumerate([*messages, *ANSWER])
    ]
    assert untouched == [
        True,
        True,
        False,
        True,
        False,
        True,
        True,
        True,
        True,
    ]


@pytest.mark.says(
    "token-budget-compaction",
    "What Gets Compacted",
    "Skips the **most recent** tool-result message "
    "(the LLM may still need it for the current turn)",
    lives="ullage.policy.stages.pressure.newest_answered",
)
@pytest.mark.parametrize("format", histories.APART)
def test_the_newest_message_of_results_is_left_as_it_is(format):
    """All results of one reply are that message, on wires that give each its own as well."""
    calls = tuple(
        histories.Call("read", f"{n}.py", LONG + str(n)) for n in range(2)
    )
    messages = histories.wire(format, [histories.Turn(calls=calls)] * 2)
    turned = [
        *messages,
        *histories.wire(
            format, [histories.Turn(said="ok", user="and?")], start=2
        ),
    ]
    wire, session = FORMATS[format], new_session(format=format)
    session.fit(histories.request(format, messages))
    session.observe(Usage(fresh_tokens=45_231))
    asked = histories.request(
        format, [*turned, histories.user(format, "Go on.")]
    )
    view = wire.history(session.fit(asked))
    shown = [
        text
        for message in view
        for _, texts in reading.results(message)
        for text in texts
    ]
    assert [is_compacted(text) for text in shown] == [True, True, False, False]


@pytest.mark.parametrize("wrapped", [0, 1, 2])
def test_of_gemini_what_the_function_gave_is_the_content(wrapped):
    """Deviation: there a result never is a string; text and JSON, in a wrapper or not."""
    rows = json.dumps(
        [{"row": number} for number in range(400)], separators=(",", ":")
    )
    calls = [
        histories.Call("read", f"{n}.py", f"{rows[:-1]},{n}]", items=wrapped)
        for n in range(3)
    ]
    messages = histories.wire(
        "gemini", [histories.Turn(calls=(call,)) for call in calls]
    )
    session = new_session(format="gemini")
    session.fit(histories.request("gemini", messages))
    session.observe(Usage(fresh_tokens=45_231))
    more = [
        {"role": "model", "parts": [{"text": "So."}]},
        histories.user("gemini", "Go on."),
    ]
    view = session.fit(histories.request("gemini", [*messages, *more]))[
        "contents"
    ]
    shown = [
        text
        for message in view
        for _, texts in reading.results(message)
        for text in texts
    ]
    assert [is_compacted(text) for text in shown] == [True, True, False]
    original = next(iter(reading.results(messages[2])))[1][0]
    assert without_refs(shown[0]) == original[:500] + MARKER


@pytest.mark.says(
    "token-budget-compaction",
    "What Gets Compacted",
    "Skips if content is not a string",
    lives="ullage.core.values.messages.ToolResult.is_string",
)
@pytest.mark.parametrize(
    "content",
    [
        [{"type": "text", "text": LONG}],
        [{"type": "text", "text": LONG}, PICTURE],
        [PICTURE],
        None,
    ],
    ids=["a list of one text", "a text and a picture", "a picture", "nothing"],
)
def test_what_is_not_a_string_is_left_as_it_is(content):
    messages = steps((content,), (LONG,), (LONG + "2",))
    view, session = after_report(messages, 45_231)
    assert view["messages"][2] is messages[2]
    assert [is_compacted(text) for text in contents(view)] == [
        False,
        True,
        False,
    ]
    assert "Compacted 1 old" in notes(session)[0]


@pytest.mark.says(
    "token-budget-compaction",
    "What Gets Compacted",
    "Skips if already truncated (ends with the marker)",
    lives="ullage.policy.stages.placeholders.head_and_marker",
)
def test_what_ends_in_the_marker_is_left_as_it_is():
    """Whoever wrote it there; where it stands in the middle it says nothing."""
    messages = steps((LONG + MARKER,), (MARKER + LONG,), (LONG,))
    view, _ = after_report(messages, 45_231)
    assert view["messages"][2] is messages[2]
    assert is_compacted(view["messages"][4]["content"][0]["content"])


@pytest.mark.says(
    "token-budget-compaction",
    "What Gets Compacted",
    "Skips if content is already shorter than the retention limit",
    lives="ullage.policy.stages.placeholders.head_and_marker",
)
@pytest.mark.parametrize("length", [0, 1, 499, 500])
def test_what_is_short_enough_is_left_as_it_is(length):
    messages = steps(("x" * length,), (LONG,), (LONG + "2",))
    view, _ = after_report(messages, 45_231)
    assert view["messages"][2] is messages[2]


@pytest.mark.parametrize("length", [501, 550, 580])
def test_what_the_marker_would_make_longer_is_left_whole(length):
    """Deviation: a cut just over the limit would win nothing."""
    view, _ = after_report(
        steps(("x" * length,), (LONG,), (LONG + "2",)), 45_231
    )
    assert contents(view)[0] == "x" * length


@pytest.mark.says(
    "token-budget-compaction",
    "What Gets Compacted",
    "Truncates to `tool_result_retention_chars` characters",
    lives="ullage.policy.stages.placeholders.head_and_marker",
)
@pytest.mark.says(
    "token-budget-compaction",
    "What Gets Compacted",
    "Appends `[truncated for context management]` so the LLM knows what happened",
    lives="ullage.documents.presets.token_budget.MARKER",
)
def test_exactly_the_first_500_characters_stay_and_the_marker_is_the_end():
    view, session = after_report(OLD, 45_231)
    shown = contents(view)[0]
    assert MARKER == "[truncated for context management]"
    ref = next(event.ref for event in session.events if event.kind == "pruned")
    assert (
        shown
        == f"{LONG[:500]}\n\n[ref={ref}, 2,400 characters in all]\n{MARKER}"
    )
    assert session.store.get("", ref).text == LONG, (
        "nothing is lost, though no tool is offered"
    )


def test_no_character_is_cut_in_half():
    """Deviation: fewer than 500 stay where the 500th is the first half of one."""
    text = "x" * 499 + "e\u0301" + LONG
    view, _ = after_report(steps((text,), (LONG,), (LONG + "2",)), 45_231)
    assert without_refs(contents(view)[0]) == "x" * 499 + MARKER


# ── Idempotency ──────────────────────────────────────────────────────────────────────────


@pytest.mark.says(
    "token-budget-compaction",
    "Idempotency",
    "The truncation marker check (`content.endswith(marker)`) ensures that already-compacted "
    "results are not re-truncated.",
    lives="ullage.policy.stages.placeholders.head_and_marker",
)
@pytest.mark.says(
    "token-budget-compaction",
    "Idempotency",
    "This means the method can be called on every turn without accumulating markers.",
    lives="ullage.documents.presets.token_budget",
)
@given(batches=batches)
def test_over_the_budget_at_every_turn_each_result_is_compacted_once(batches):
    """Also where the caller keeps the view as its history, and so hands our cuts in again."""
    for keeps_the_view in (False, True):
        session, messages = new_session(), steps()
        before = []
        for number, batch in enumerate(batches):
            messages = [*messages, *step(number, *batch)]
            with contextlib.redirect_stderr(io.StringIO()):
                view = session.fit(request(messages))
            session.observe(Usage(fresh_tokens=99_999))
            shown = contents(view)
            assert all(
                text.count(MARKER) <= 1
                for text in shown
                if isinstance(text, str)
            )
            for old, new in zip(before, shown, strict=False):
                assert old == new or not is_compacted(old)
            before = shown
            messages = view["messages"] if keeps_the_view else messages


# ── Diagnostics ──────────────────────────────────────────────────────────────────────────

FIVE = steps((LONG, LONG + "2"), ("short", LONG + "3"), (LONG + "4",))


@pytest.mark.says(
    "token-budget-compaction",
    "Diagnostics",
    "When compaction occurs, a message is printed to stderr:",
    lives="ullage.session.core",
)
@pytest.mark.says(
    "token-budget-compaction",
    "Diagnostics",
    "Note: Compacted 3 old tool result(s) — input tokens (45,231) exceeded budget (40,000)",
    lives="ullage.core.contract.policy.Policy",
)
def test_the_note_is_the_documents_to_the_character(capsys):
    _, session = after_report(FIVE, 45_231)
    note = "Note: Compacted 3 old tool result(s) — input tokens (45,231) exceeded budget (40,000)"
    assert capsys.readouterr() == ("", f"{note}\n")
    assert notes(session) == [note]
    session.fit(request([*FIVE, *ANSWER]))
    assert capsys.readouterr().err == ""


def test_the_note_counts_what_this_compaction_did(capsys):
    """Not what an earlier one had done, and not what it left alone."""
    _, session = after_report(FIVE, 45_231)
    more = [*FIVE, *ANSWER]
    for number, reported in ((3, 1_045_231), (4, 2_000), (5, 50_000)):
        session.observe(Usage(fresh_tokens=reported))
        more += step(number, f"{LONG}{number}")
        session.fit(request(more))
    first, *later = capsys.readouterr().err.splitlines()
    assert first.startswith("Note: Compacted 3 old")
    assert later == [
        "Note: Compacted 2 old tool result(s) — input tokens (50,000) exceeded budget (40,000)"
    ]


def test_nothing_is_said_where_nothing_was_compacted(capsys):
    _, session = after_report(steps(("short",), (LONG,)), 45_231)
    assert capsys.readouterr().err == ""
    assert notes(session) == []


class Broken(io.StringIO):
    def write(self, text):
        raise BrokenPipeError


@pytest.mark.parametrize("stderr", [None, Broken()], ids=["none", "broken"])
def test_a_turn_does_not_fail_for_want_of_a_stderr(monkeypatch, stderr):
    monkeypatch.setattr(sys, "stderr", stderr)
    view, session = after_report(FIVE, 45_231)
    assert sum(map(is_compacted, contents(view))) == 3
    assert len(notes(session)) == 1


# ── Configuration ────────────────────────────────────────────────────────────────────────


@pytest.mark.says(
    "token-budget-compaction",
    "Configuration",
    "`InputTokenBudget` | `40000` | Input token threshold that triggers compaction. "
    "Set to `0` to disable.",
    lives="ullage.documents.presets.token_budget.TokenBudgetSettings",
)
@pytest.mark.says(
    "token-budget-compaction",
    "Configuration",
    "`ToolResultRetentionChars` | `500` | Characters to keep from each old tool result after "
    "compaction.",
    lives="ullage.documents.presets.token_budget.TokenBudgetSettings",
)
@pytest.mark.parametrize(
    ("budget", "chars", "kept"),
    [
        (40_000, 500, None),
        (20_000, 500, [500, 500]),
        (20_000, 80, [80, 80]),
        (20_000, 0, [0, 0]),
    ],
)
def test_settings_come_under_the_documents_keys(tmp_path, budget, chars, kept):
    file = tmp_path / "settings.toml"
    file.write_text(
        f"InputTokenBudget = {budget}\nToolResultRetentionChars = {chars}\n"
    )
    view, session = after_report(
        OLD, 30_000, documents.load("token_budget", file)
    )
    shown = [
        without_refs(text) for text in contents(view) if is_compacted(text)
    ]
    assert shown == [LONG[:count] + MARKER for count in kept or ()]
    assert all(
        f"exceeded budget ({budget:,})" in note for note in notes(session)
    )
    assert (
        documents.load("token_budget", {}).name
        == documents.preset("token_budget").name
    )
    assert TokenBudgetSettings() == TokenBudgetSettings(
        input_token_budget=40_000, tool_result_retention_chars=500
    )


@pytest.mark.parametrize(
    ("values", "says"),
    [
        (
            {"InputTokenBudget": -1},
            "InputTokenBudget: Expected `int` >= 0, not -1",
        ),
        (
            {"ToolResultRetentionChars": -1},
            "ToolResultRetentionChars: Expected `int` >= 0, not -1",
        ),
        ({"InputTokenBudget": "40000"}, "got `str`"),
        ({"InputTokenBudget": 1.5}, "got `float`"),
        ({"InputTokenBudget": True}, "got `bool`"),
        ({"ToolResultRetentionChars": None}, "got `null`"),
        (
            {"input_token_budget": 1},
            "The keys are InputTokenBudget, ToolResultRetentionChars",
        ),
    ],
)
def test_settings_that_are_wrong_are_told(values, says):
    with pytest.raises(ConfigError, match=re.escape(says)):
        documents.load("token_budget", values)


@pytest.mark.parametrize("value", [-1, "1", 1.5, None])
def test_settings_given_by_python_name_are_checked_as_well(value):
    with pytest.raises(ConfigError, match="InputTokenBudget"):
        TokenBudgetSettings(input_token_budget=value)
    with pytest.raises(ConfigError, match="ToolResultRetentionChars"):
        TokenBudgetSettings(tool_result_retention_chars=value)


# ── where the wire has the last word ─────────────────────────────────────────────────────


def test_reasoning_that_must_stay_holds_the_compaction_back(capsys):
    """Deviation: with manual thinking the open turn must begin with its thinking (A14)."""
    messages = copy.deepcopy(OLD)
    for message in messages[1::2]:
        thought = {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}
        message["content"].insert(0, thought)
    session = new_session()
    asked = {
        "model": "claude-opus-5-2",
        "max_tokens": 9_000,
        "messages": messages,
    }
    asked["thinking"] = {"type": "enabled", "budget_tokens": 2_000}
    session.fit(asked)
    session.observe(Usage(fresh_tokens=45_231))
    more = copy.deepcopy(step(3, LONG + "4"))
    more[0]["content"].insert(
        0, {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}
    )
    view = session.fit({**asked, "messages": [*messages, *more]})
    assert not any(map(is_compacted, contents(view)))
    assert "held" in {event.kind for event in session.events}
    assert capsys.readouterr().err == ""


# ── remove the behaviour, and this fails ─────────────────────────────────────────────────

BASH = {"name": "bash", "input_schema": {"type": "object"}}
CONFORMING = {
    "at": [],
    "over": ["cut", "list", "short", "marked", "cut", "newest"],
    "later": ["cut", "list", "short", "marked", "cut", "newest", "new"],
    "notes": [
        "Note: Compacted 2 old tool result(s) — input tokens (40,001) exceeded budget (40,000)"
    ],
    "tools": [BASH],
}


def behaviour(policy):
    """What the document says, as one value: which results are shown how, and what is told."""
    listed = [{"type": "text", "text": LONG}]
    messages = steps(
        (LONG, listed), ("short", LONG + MARKER), (LONG + "2",), (LONG + "3",)
    )
    kinds = [
        (LONG[:500] + "[truncated for context management]", "cut"),
        (listed, "list"),
        ("short", "short"),
        (LONG + MARKER, "marked"),
        (LONG + "3", "newest"),
        (LONG + "4", "new"),
    ]

    def named(view):
        shown = [without_refs(content) for content in contents(view)]
        return [
            next((kind for is_so, kind in kinds if text == is_so), "else")
            for text in shown
        ]

    at, _ = after_report(messages, 40_000, policy)
    view, session = after_report(messages, 40_001, policy)
    new = new_session(policy)
    new.fit(request(messages))
    new.observe(Usage(fresh_tokens=40_001))
    later = new.fit(request([*messages, *step(4, LONG + "4")]))
    return {
        "at": [
            text
            for text in contents(at)
            if is_compacted(text) and text != LONG + MARKER
        ],
        "over": named(view),
        "later": named(later),
        "notes": notes(session),
        "tools": new_session(policy).fit(
            {**request(messages[:1]), "tools": [BASH]}
        )["tools"],
    }


def of_stage(**changed):
    """The preset with some of its stage's questions answered otherwise."""
    policy = token_budget()
    (stage,) = policy.under_pressure
    show = partial(stage.keywords["show"], **changed.pop("words", {}))
    keywords = {**stage.keywords, "show": show, **changed}
    return replace(policy, under_pressure=(partial(stage.func, **keywords),))


MUTANTS = {
    "a larger budget": token_budget(
        TokenBudgetSettings(input_token_budget=40_001)
    ),
    "a smaller budget": token_budget(
        TokenBudgetSettings(input_token_budget=39_999)
    ),
    "no budget": token_budget(TokenBudgetSettings(input_token_budget=0)),
    "a character more": token_budget(
        TokenBudgetSettings(tool_result_retention_chars=501)
    ),
    "a character less": token_budget(
        TokenBudgetSettings(tool_result_retention_chars=499)
    ),
    "another marker": of_stage(
        words={"marker": "[truncated for context management.]"}
    ),
    "another show": of_stage(
        show=partial(bare_placeholder, words="[gone; ref={ref}]")
    ),
    "our trigger": of_stage(wanted=partial(over_share, high=0.75, low=0.4)),
    "nothing stays": of_stage(protected=lambda window: (window.size, 0)),
    "only the newest stays": of_stage(protected=newest_batch),
    "lists as well": of_stage(candidates=results_only),
    "the newest first": of_stage(
        candidates=lambda window, protected: strings_only(window, protected)[
            1:
        ]
    ),
    "only if it wins enough": of_stage(least_share=0.9),
    "no stage": replace(token_budget(), under_pressure=()),
    "no note": replace(token_budget(), diagnostic=None),
    "another note": replace(
        token_budget(), diagnostic="Compacted {count} ({reported_tokens})"
    ),
    "recall offered": replace(
        token_budget(), toolset=Policy(name="ours").toolset
    ),
}


def test_the_preset_does_what_the_document_says():
    assert behaviour(token_budget()) == CONFORMING
    assert behaviour(of_stage()) == CONFORMING
    assert (
        behaviour(of_stage(protected=newest_answered, candidates=strings_only))
        == CONFORMING
    )


@pytest.mark.parametrize("mutant", MUTANTS.values(), ids=MUTANTS)
def test_a_preset_that_was_changed_in_any_place_does_not(mutant):
    assert behaviour(mutant) != CONFORMING
