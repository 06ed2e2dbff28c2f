"""A turn of the loop in the four formats, sync and async, with dicts and the SDKs' objects."""

import asyncio
import copy
import re
import threading

import pytest

from lab.returned import problems
from tests.loop.replies import (
    FORMAT_NAMES,
    INPUT_TOKENS,
    OUTPUT_TOKENS,
    as_sdk,
    asking,
    plain,
    reply,
    request,
    results,
)
from ullage import (
    AsyncSession,
    ConfigError,
    FormatError,
    Limits,
    OverLimitError,
    Policy,
    Session,
)
from ullage.doors.loop import Outcome, Returned, Tool, arun_turn, run_turn
from ullage.wires import FORMATS

READ_ON = re.compile(
    r'get_continuation\(tool_call_id=\\?"(\w+)\\?", offset=(\d+)\)'
)
formats = pytest.mark.parametrize("format", FORMAT_NAMES)


def read_log(path: str, lines: int = 10) -> str:
    """Read a log."""
    return "\n".join(f"{path} line {n}" for n in range(lines))


def fail(path: str) -> str:
    """Never works."""
    raise OSError(f"{path} is not there")


class Scripted:
    """A client call that gives one reply after the other, and keeps what it was sent."""

    def __init__(self, format, *script, sdk=False):
        self.format, self.script, self.sdk = format, list(script), sdk
        self.views = []

    def next_reply(self, view):
        self.views.append(plain(view))
        given = self.script.pop(0) if len(self.script) > 1 else self.script[0]
        if isinstance(given, BaseException):
            raise given
        body = given(view, len(self.views)) if callable(given) else given
        return as_sdk(self.format, body) if self.sdk else body

    def __call__(self, **view):
        return self.next_reply(view)


class AsyncScripted(Scripted):
    async def __call__(self, **view):
        await asyncio.sleep(0)
        return self.next_reply(view)


def new_session(format, kind=Session, **more):
    return kind(
        request(format, [])["model"],
        **{"format": format, "recall": True, **more},
    )


def run(format, *script, history=None, sdk=False, session=None, **more):
    history = asking(format) if history is None else history
    client = Scripted(format, *script, sdk=sdk)
    session = session or new_session(format)
    outcome = run_turn(client, session, request(format, history), **more)
    return outcome, client, session


async def arun(format, *script, history=None, sdk=False, **more):
    history = asking(format) if history is None else history
    client = AsyncScripted(format, *script, sdk=sdk)
    session = new_session(format, AsyncSession)
    outcome = await arun_turn(
        client, session, request(format, history), **more
    )
    return outcome, client, session


def is_legal(format, views):
    return [
        problem for view in views for problem in problems(format, view)
    ] == []


# ── what a turn is ───────────────────────────────────────────────────────────────────────


@formats
@pytest.mark.parametrize("sdk", [False, True], ids=["dicts", "objects"])
def test_tools_are_run_in_order_and_the_answer_ends_the_turn(format, sdk):
    history = asking(format)
    before = copy.deepcopy(history)
    both = [
        ("read_log", {"path": "a", "lines": 2}),
        ("read_log", {"path": "b", "lines": 1}),
    ]
    script = [
        reply(format, "Let me look.", both, 1),
        reply(format, "All is well."),
    ]
    outcome, client, session = run(
        format, *script, history=history, sdk=sdk, tools=[read_log]
    )
    assert (outcome.text, outcome.why) == ("All is well.", "answered")
    assert (outcome.iterations, outcome.uncounted) == (2, 0)
    assert outcome.history is history
    assert history[:1] == before
    assert results(format, history) == [
        ("a line 0\na line 1", False),
        ("b line 0", False),
    ]
    assert outcome.usage == session.usage, "what the session calibrates by"
    assert outcome.usage.input_tokens == 2 * INPUT_TOKENS
    assert outcome.usage.output_tokens == 2 * OUTPUT_TOKENS
    assert is_legal(format, client.views)
    wire = FORMATS[format]
    assert "read_log" in [
        wire.tool_name(tool) for tool in wire.tools(client.views[0])
    ]
    assert history[-1] in (
        wire.reply(script[1])[-1],
        *wire.reply(as_sdk(format, script[1])),
    )


@formats
@pytest.mark.parametrize("sdk", [False, True], ids=["dicts", "objects"])
def test_sync_and_async_are_the_same(format, sdk):
    calls = [
        ("read_log", {"path": "a", "lines": 6_000}),
        ("fail", {"path": "b"}),
        ("hm", {}),
    ]
    script = [
        reply(format, "", calls, 1),
        reading_on(format),
        reply(format, "Done."),
    ]
    tools = [read_log, fail]
    one, client, session = run(format, *script, sdk=sdk, tools=tools)
    two, aclient, asession = asyncio.run(
        arun(format, *script, sdk=sdk, tools=tools)
    )
    assert plain(one.history) == plain(two.history)
    assert (one.text, one.why, one.iterations, one.uncounted, one.usage) == (
        two.text, two.why, two.iterations, two.uncounted, two.usage
    )  # fmt: skip
    assert client.views == aclient.views
    assert session.state == asession.state


def reading_on(format, name="get_continuation"):
    """Does what the newest notice says."""

    def script(view, number):
        ref, offset = READ_ON.findall(str(plain(view)))[-1]
        arguments = {"tool_call_id": ref, "offset": int(offset)}
        return reply(format, "", [(name, arguments)], number)

    return script


@formats
def test_a_cut_result_is_read_on_without_any_tool_of_the_caller(format):
    """`tool-result-continuation`, "Data flow"."""
    script = [
        reply(format, "", [("read_log", {"path": "a", "lines": 6_000})], 1)
    ]
    script += [reading_on(format), reading_on(format), reply(format, "Done.")]
    outcome, client, _ = run(format, *script, tools=[read_log])
    whole, *pages = [text for text, _ in results(format, outcome.history)]
    assert whole == read_log("a", 6_000)
    assert (outcome.iterations, outcome.uncounted) == (2, 2)
    offset = int(READ_ON.findall(str(client.views[1]))[-1][1])
    for page in pages:
        said, _, _ = page.rpartition("\n[characters ")
        assert whole[offset:].startswith(said)
        offset += len(said)
    assert is_legal(format, client.views)


# ── what goes wrong in a call ────────────────────────────────────────────────────────────


@formats
def test_every_call_has_a_result_whatever_is_wrong_with_it(format):
    calls = [
        ("fail", {"path": "a.log"}),
        ("nobody", {}),
        ("read_log", {"path": "a", "lines": "1"}),
        ("read_log", {"lines": 1}),
        ("read_log", {"path": "a", "lines": "many"}),
        ("read_log", {"path": "a", "colour": "red"}),
    ]
    outcome, client, _ = run(
        format,
        reply(format, "", calls, 1),
        reply(format, "I see."),
        tools=[read_log, fail],
    )
    texts = [text for text, _ in results(format, outcome.history)]
    assert texts[0] == "OSError: a.log is not there"
    assert texts[1] == "no tool is called 'nobody'; there are: read_log, fail"
    assert texts[2] == "a line 0", "numbers as models write them"
    assert "path" in texts[3]
    assert "int" in texts[4]
    assert "colour" in texts[5]
    if format in ("anthropic", "gemini"):
        failed = [is_error for _, is_error in results(format, outcome.history)]
        assert failed == [True, True, False, True, True, True]
    assert is_legal(format, client.views)


@pytest.mark.parametrize("arguments", ["{", "[1]", "nothing", '{"path": '])
def test_arguments_that_are_no_object_are_told_to_the_model(arguments):
    broken = reply("openai-chat", "", [("read_log", {})], 1)
    call = broken["choices"][0]["message"]["tool_calls"][0]
    call["function"]["arguments"] = arguments
    outcome, _, _ = run(
        "openai-chat", broken, reply("openai-chat", "Again."), tools=[read_log]
    )
    [(text, _)] = results("openai-chat", outcome.history)
    assert "Send the call again" in text


@formats
def test_a_tool_may_return_anything_json_has_and_say_that_it_failed(format):
    tools = [
        Tool("table", "", {"type": "object"}, lambda _: {"rows": [1, 2]}),
        Tool("quiet", "", {"type": "object"}, lambda _: None),
        Tool(
            "refuses",
            "",
            {"type": "object"},
            lambda _: Returned("not today", is_error=True),
        ),
    ]
    calls = [(tool.name, {}) for tool in tools]
    outcome, _, _ = run(
        format, reply(format, "", calls, 1), reply(format, "Ok."), tools=tools
    )
    texts = [text for text, _ in results(format, outcome.history)]
    assert texts == ['{"rows":[1,2]}', "", "not today"]


# ── when it ends ─────────────────────────────────────────────────────────────────────────


@formats
def test_the_cap_stops_a_model_that_never_answers_and_the_turn_can_go_on(
    format,
):
    """`three-layer-management`, "Integration with ChatService": ``_maxIterations``."""

    def again(view, number):
        return reply(
            format, "", [("read_log", {"path": "a", "lines": 1})], number
        )

    history = asking(format)
    outcome, client, _ = run(format, again, history=history, tools=[read_log])
    assert (outcome.why, outcome.iterations, len(client.views)) == (
        "iteration_cap",
        20,
        20,
    )
    assert is_legal(format, client.views)
    outcome, _, _ = run(
        format, reply(format, "Done."), history=history, tools=[read_log]
    )
    assert (outcome.text, outcome.why) == ("Done.", "answered")


@formats
def test_a_model_that_reads_on_for_ever_is_stopped_by_a_ceiling_of_its_own(
    format,
):
    def first_page(view, number):
        ref, _ = READ_ON.findall(str(plain(view)))[0]
        return reply(
            format, "", [("get_continuation", {"tool_call_id": ref})], number
        )

    script = [
        reply(format, "", [("read_log", {"path": "a", "lines": 6_000})], 1),
        first_page,
    ]
    outcome, client, _ = run(
        format, *script, tools=[read_log], max_uncounted=30
    )
    assert (outcome.why, outcome.iterations, outcome.uncounted) == (
        "uncounted_ceiling",
        1,
        30,
    )
    assert len(client.views) == 31


def test_reading_on_does_not_count_but_beside_a_tool_it_does():
    format = "openai-chat"

    def mixed(view, number):
        ref, offset = READ_ON.findall(str(view))[-1]
        page = (
            "get_continuation",
            {"tool_call_id": ref, "offset": int(offset)},
        )
        return reply(
            format, "", [page, ("read_log", {"path": "b", "lines": 1})], number
        )

    script = [
        reply(format, "", [("read_log", {"path": "a", "lines": 6_000})], 1)
    ]
    script += [reading_on(format)] * 3 + [mixed, reply(format, "Done.")]
    outcome, _, _ = run(format, *script, tools=[read_log], max_iterations=3)
    assert (outcome.why, outcome.iterations, outcome.uncounted) == (
        "answered",
        3,
        3,
    )
    counted, _, _ = run(
        format, *script, tools=[read_log], max_iterations=3, uncounted=()
    )
    assert (counted.why, counted.iterations, counted.uncounted) == (
        "iteration_cap",
        3,
        0,
    )


def test_a_tool_of_the_callers_own_with_a_recall_name_counts_as_what_it_is():
    """After a clash ours are renamed; the caller's tool is run, and ours is still uncounted."""
    format = "openai-chat"

    def get_continuation(page: int) -> str:
        """The next page of a book."""
        return f"page {page}"

    script = [
        reply(format, "", [("read_log", {"path": "a", "lines": 6_000})], 1),
        reading_on(format, name="ullage_get_continuation"),
        reply(format, "", [("get_continuation", {"page": 7})], 3),
        reply(format, "Done."),
    ]
    outcome, _, _ = run(format, *script, tools=[read_log, get_continuation])
    assert results(format, outcome.history)[-1] == ("page 7", False)
    assert outcome.uncounted == 1
    assert outcome.iterations == 3


@formats
def test_a_reply_that_says_nothing_ends_the_turn_and_leaves_no_trace(format):
    history = asking(format)
    outcome, _, _ = run(format, reply(format), history=history)
    assert (outcome.text, outcome.why, len(history)) == ("", "empty", 1)


def test_the_history_is_seen_to_before_the_final_return():
    """`output-cache-and-compaction` §2.8: "just before finishing (before final return)"."""
    format = "openai-chat"
    session = new_session(
        format, limits=Limits(window_tokens=8_000, output_reserve_tokens=500)
    )
    calls = [("read_log", {"path": "a", "lines": 300})] * 2
    script = [reply(format, "", calls, n) for n in range(1, 6)]
    long = reply(format, "It says: " + "so it goes, and so on. " * 500)
    outcome, _, _ = run(
        format, *script, long, session=session, tools=[read_log]
    )
    decided = batches(session)
    session.fit(request(format, outcome.history))
    assert outcome.why == "answered"
    assert batches(session) == decided, (
        "what the answer made necessary was decided already"
    )


def batches(session):
    return [
        batch
        for entry in session.state.ledger.entries.values()
        for batch in entry.batches
    ]


def test_an_answer_is_given_even_if_the_history_no_longer_fits():
    """The next turn tells; this one has its answer."""
    format = "openai-chat"
    limits, bare = (
        Limits(window_tokens=2_000, output_reserve_tokens=100),
        Policy(name="bare"),
    )
    session = new_session(format, limits=limits, policy=bare)
    long = "It says: " + "so it goes. " * 2_000
    outcome, _, _ = run(format, reply(format, long), session=session)
    assert (outcome.text, outcome.why) == (long, "answered")
    with pytest.raises(OverLimitError):
        session.fit(request(format, outcome.history))


# ── how it is called ─────────────────────────────────────────────────────────────────────


def test_tools_in_the_request_stay_before_ours():
    format = "anthropic"
    given = {"type": "web_search_20250305", "name": "web_search"}
    client = Scripted(format, reply(format, "Done."))
    made = {**request(format, asking(format)), "tools": [given]}
    run_turn(client, new_session(format), made, tools=[read_log])
    names = [tool["name"] for tool in client.views[0]["tools"]]
    assert names[:2] == ["web_search", "read_log"]
    assert made["tools"] == [given]


def test_two_tools_of_one_name_are_refused():
    with pytest.raises(ConfigError, match="'read_log'"):
        run(
            "openai-chat",
            reply("openai-chat", "Done."),
            tools=[read_log, read_log],
        )


async def slow(path: str) -> str:
    """Takes its time."""
    await asyncio.sleep(0)
    return f"{path}, at last"


def test_a_tool_that_must_be_awaited_needs_the_async_loop():
    script = [
        reply("anthropic", "", [("slow", {"path": "a"})], 1),
        reply("anthropic", "Done."),
    ]
    with pytest.raises(ConfigError, match="arun_turn"):
        run("anthropic", *script, tools=[slow])
    outcome, _, _ = asyncio.run(arun("anthropic", *script, tools=[slow]))
    assert results("anthropic", outcome.history) == [("a, at last", False)]


def test_parallel_calls_run_at_once_in_the_async_loop_and_stand_in_order():
    """Each waits for the other: one after the other, neither would ever end."""
    first, second = asyncio.Event(), asyncio.Event()

    async def left() -> str:
        """Waits for right."""
        first.set()
        await second.wait()
        return "left"

    async def right() -> str:
        """Waits for left."""
        second.set()
        await first.wait()
        return "right"

    script = [
        reply("gemini", "", [("left", {}), ("right", {})], 1),
        reply("gemini", "Done."),
    ]
    outcome, _, _ = asyncio.run(arun("gemini", *script, tools=[left, right]))
    assert [text for text, _ in results("gemini", outcome.history)] == [
        "left",
        "right",
    ]


def test_plain_functions_run_in_threads_in_the_async_loop():
    """Each waits for the other, and neither blocks the loop."""
    both = threading.Barrier(2, timeout=20)

    def left() -> int:
        """Waits for right."""
        return both.wait() * 0

    def right() -> int:
        """Waits for left."""
        return both.wait() * 0

    script = [
        reply("gemini", "", [("left", {}), ("right", {})], 1),
        reply("gemini", "Done."),
    ]
    outcome, _, _ = asyncio.run(arun("gemini", *script, tools=[left, right]))
    assert [text for text, _ in results("gemini", outcome.history)] == [
        "0",
        "0",
    ]


def test_the_history_must_be_a_list():
    client = Scripted("openai-responses", reply("openai-responses", "Done."))
    asked = {"model": "gpt-4.1", "input": "What does the log say?"}
    with pytest.raises(FormatError, match="list"):
        run_turn(client, Session("gpt-4.1"), asked)


def test_the_format_is_recognised_from_the_first_request():
    client = Scripted("anthropic", reply("anthropic", "Done."))
    outcome = run_turn(
        client,
        Session("claude-sonnet-4-5"),
        request("anthropic", asking("anthropic")),
    )
    assert isinstance(outcome, Outcome)
    assert outcome.text == "Done."
