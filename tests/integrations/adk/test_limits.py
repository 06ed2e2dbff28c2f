"""`multi-stage-strategy.md` in its own host: the brake, the cut, recall and the budget."""

import asyncio
import gc
import json
import re

import pytest

pytest.importorskip(
    "google.adk", reason="google-adk is not installed (make adk)"
)

from functools import partial

from google.adk.agents import Agent, RunConfig
from google.adk.agents.run_config import StreamingMode
from google.adk.models import BaseLlm, LlmRequest, LlmResponse
from google.adk.tools import LongRunningFunctionTool
from google.genai import types

from tests.integrations.adk import world
from tests.integrations.adk.world import (
    LINE,
    SESSION,
    USER,
    agent_of,
    contents,
    functions,
    kept,
    new_service,
    plugin_of,
    responses,
    running,
    say,
    steps,
    text_of,
)
from tests.servers import Call, Refusal, Reply
from ullage import Budget, ConfigError, Limits, SqliteStore
from ullage.integrations.adk import UllageAdkPlugin
from ullage.session.recall.tools import recall_tools

ASKED = types.Content(role="user", parts=[types.Part(text="And now?")])
BRAKE = {"SAFE_TRIGGER_TOKENS": 8_000, "COMPACTION_TRIGGER_TOKENS": 0}


def played(
    server, plugin, *texts, tools=(world.read_file,), service=None, **more
):
    """Say each of the texts to one runner: the events, the ADK session, its family."""

    async def main():
        agent = agent_of(server, tools=tools, **more)
        async with running(agent, plugin, service) as runner:
            events = [
                event for text in texts for event in await say(runner, text)
            ]
            session = await kept(runner)
            return events, session, plugin.family(session) if plugin else None

    return asyncio.run(main())


def kinds(family):
    return {
        event.kind for session in family.sessions for event in session.events
    }


# 1. The emergency brake


@pytest.mark.says(
    "multi-stage-strategy",
    "Emergency History Compaction (LLM Callback Level)",
    'In `model_callbacks.py`, we implement an "Emergency Brake" to prevent '
    "`400 INVALID_ARGUMENT` errors when the LLM's hard limit is approached.",
    lives="ullage.integrations.adk",
)
def test_an_agent_goes_on_where_the_model_would_refuse_it(serve):
    refusing = serve("gemini", [*steps(12), "Found it."], limit_tokens=12_000)
    with pytest.raises(Exception, match="400 INVALID_ARGUMENT"):
        played(refusing, None, "Find the fault.")

    server = serve(
        "gemini", [*steps(12), "Found it."], limit_tokens=12_000, strict=True
    )
    plugin = plugin_of(**BRAKE, limits=Limits(window_tokens=20_000))
    events, _, family = played(server, plugin, "Find the fault.")
    assert events[-1].content.parts[0].text == "Found it."
    assert "condensed" in kinds(family)
    assert "refused" not in kinds(family)
    last = server.requests[-1]
    assert (
        last.body["systemInstruction"]
        == server.requests[0].body["systemInstruction"]
    )
    assert text_of(contents(last)[0]) == "Find the fault."
    account = text_of(contents(last)[1])
    assert "- assistant: Step 0." in account
    assert '- read_file {"path": "0.log"} → ' in account.replace('":"', '": "')


def test_what_is_refused_all_the_same_is_shortened_and_sent_again(serve):
    """The window is believed to be a million; the server takes 12,000 tokens."""
    server = serve(
        "gemini", [*steps(12), "Found it."], limit_tokens=12_000, strict=True
    )
    plugin = plugin_of(COMPACTION_TRIGGER_TOKENS=0)
    events, session, family = played(server, plugin, "Find the fault.")
    assert events[-1].content.parts[0].text == "Found it."
    assert "refused" in kinds(family)
    for captured in server.requests:
        assert functions(captured) == functions(server.requests[0])
    answered = [body for body in server.answered if "usageMetadata" in body]
    assert len(answered) == 13 < len(server.answered)
    assert family.budget.spent.calls == 13
    assert session.state["ullage:spent:investigator"]["calls"] == 13


def refusal(status, code, message):
    return Refusal(
        code, {"error": {"code": code, "status": status, "message": message}}
    )


@pytest.mark.parametrize(
    ("status", "code", "message", "sent"),
    [
        ("INTERNAL", 500, "boom", 1),
        (
            "INVALID_ARGUMENT",
            400,
            "The input token count exceeds the maximum",
            2,
        ),  # and no less than was accepted
        (
            "INVALID_ARGUMENT",
            400,
            "The input token count (9000000) exceeds the maximum number of tokens allowed (1000)",
            1,  # by these numbers not even an empty request would do
        ),
    ],
)
def test_an_error_that_stays_is_the_callers(
    serve, status, code, message, sent
):
    script = steps(8)
    server = serve(
        "gemini",
        lambda _: script.pop() if script else refusal(status, code, message),
    )
    plugin = UllageAdkPlugin(budget=partial(Budget, tokens=9_000_000))

    async def main():
        async with running(agent_of(server), plugin) as runner:
            with pytest.raises(Exception, match=message[:15]):
                await say(runner)
            return plugin.family(await kept(runner)).budget

    budget = asyncio.run(main())
    assert len(server.requests) == 8 + sent
    assert budget.reserved.tokens == 0
    assert budget.spent.calls == 8


# 2. Tool output truncation

LONG = "".join(f"{n:06} {LINE}" for n in range(8_000))
ROWS = [{"row": n} for n in range(700)]
WIDE = {"rows": "x" * 250_000, "more": False}


def logs() -> str:
    """The logs."""
    return LONG


def rows() -> list[dict]:
    """The rows."""
    return ROWS


def wide() -> dict:
    """A wide answer."""
    return WIDE


def few() -> dict:
    """A small answer."""
    return {"status": "ok"}


TOOLS = (logs, rows, wide, few)
ALL = Reply("I look.", [Call("logs"), Call("rows"), Call("wide"), Call("few")])


@pytest.mark.says(
    "multi-stage-strategy",
    "2. Tool Output Truncation",
    "The `truncate_tool_output_callback` in `tool_callbacks.py` provides a safety guard.",
    lives="ullage.integrations.adk",
)
def test_a_result_is_cut_before_adk_keeps_it_where_its_original_lasts(
    serve, tmp_path
):
    server = serve("gemini", [ALL, "Found it."], strict=True)
    store = SqliteStore(tmp_path / "kept.db")
    _, session, family = played(
        server, UllageAdkPlugin(store=store), "Look.", tools=TOOLS
    )
    in_adk = [
        each.response
        for e in session.events
        for each in e.get_function_responses()
    ]
    sent = [each["response"] for each in responses(server.requests[-1])]
    assert in_adk == sent
    text, listed, advice, small = sent
    assert text["result"].startswith(
        LONG[:200_000] + "\n[truncated: 200,000 of 320,000 "
    )
    assert listed["result"][:500] == ROWS[:500]
    assert listed["result"][500].startswith(
        "[truncated: the first 500 of 700 items. "
    )
    assert set(advice) == {"error", "preview"}
    assert "use a filter" in advice["error"]
    assert small == {"status": "ok"}
    (ullage,) = family.sessions
    assert [event.kind for event in ullage.events].count("truncated") == 3


def test_without_a_store_that_lasts_adk_keeps_the_original_and_the_request_is_cut(
    serve,
):
    server = serve("gemini", [ALL, "Found it."], strict=True)
    _, session, _ = played(server, UllageAdkPlugin(), "Look.", tools=TOOLS)
    in_adk = [
        each.response
        for e in session.events
        for each in e.get_function_responses()
    ]
    assert in_adk == [
        {"result": LONG},
        {"result": ROWS},
        WIDE,
        {"status": "ok"},
    ]
    sent = [each["response"] for each in responses(server.requests[-1])]
    assert sent[0]["result"].startswith(
        LONG[:200_000] + "\n[truncated: 200,000 of 320,000 "
    )
    assert len(sent[1]["result"]) == 501
    assert set(sent[2]) == {"error", "preview"}


def test_a_tool_that_answers_with_media_or_nothing_is_left_to_adk(
    serve, tmp_path
):
    def picture() -> dict:
        """A picture."""
        return {
            "shot": types.Part.from_bytes(
                data=b"\x89PNG", mime_type="image/png"
            )
        }

    def nothing() -> None:
        """Nothing."""

    server = serve(
        "gemini", [Reply("", [Call("picture"), Call("nothing")]), "Seen."]
    )
    plugin = UllageAdkPlugin(store=tmp_path / "kept.db")
    events, _, _ = played(server, plugin, "Look.", tools=(picture, nothing))
    assert events[-1].content.parts[0].text == "Seen."
    shot, none = responses(server.requests[-1])
    assert shot["parts"][0]["inline_data"]["mime_type"] == "image/png"
    assert none["response"] == {"result": None}


# Recall: ADK's own tools, answered here

RECALL = recall_tools("multi_stage")
READ_ON = RECALL[0].name


def read_on(ref, offset):
    return Reply("", [Call(READ_ON, {"tool_call_id": ref, "offset": offset})])


@pytest.mark.parametrize("lasting", [False, True])
def test_the_model_reads_on_where_it_was_cut_even_after_a_restart(
    serve, tmp_path, lasting
):
    """From ADK's session where that has it all, else from the store.

    The result is over the budget of the document's window, so the next turn shows a summary of it.
    What ADK holds opens by the summary's ref, and ends in the notice that opens the original.
    """

    def replies(captured):
        number = len(server.requests)
        if number == 0:
            return Reply("I look.", [Call("logs")])
        if number == 1:
            return "It is long."
        if number == 2:
            (ref,) = set(
                re.findall(
                    r"ref=(\w{16}) logs", str(captured.body["contents"])
                )
            )
            return read_on(ref, 199_000)
        if number == 3:
            page = responses(captured)[-1]["response"]["output"]
            (ref,) = set(
                re.findall(
                    r'Read on: get_continuation\(tool_call_id="(\w{16})"', page
                )
            )
            return read_on(ref, 200_000)
        return "Read."

    server = serve("gemini", replies, strict=True)

    def live(text):
        plugin = UllageAdkPlugin(
            store=tmp_path / "kept.db" if lasting else None
        )
        return played(
            server,
            plugin,
            text,
            tools=TOOLS,
            service=new_service("sqlite", tmp_path),
        )

    live("Look.")
    events, _, family = live("Read on.")
    assert events[-1].content.parts[0].text == "Read."
    page = responses(server.requests[-1])[-1]
    assert page["name"] == READ_ON
    assert page["response"]["output"].startswith(LONG[200_000:207_000])
    assert "recalled" in kinds(family)
    assert functions(server.requests[0])[:4] == ["logs", "rows", "wide", "few"]
    assert functions(server.requests[0])[4:] == [tool.name for tool in RECALL]
    assert all(
        len(captured.body["tools"]) == 1 for captured in server.requests
    )


def test_a_ref_opens_in_its_own_adk_session_alone(serve, tmp_path):
    server = serve("gemini", [Reply("", [Call("logs")]), "Long."])
    store = SqliteStore(tmp_path / "kept.db")

    async def main():
        async with running(
            agent_of(server, tools=TOOLS), UllageAdkPlugin(store=store)
        ) as runner:
            await say(runner)
            text = responses(server.requests[-1])[0]["response"]["result"]
            ref = text.rpartition("Read on: ")[2].split('"')[1]
            server._replies += [
                read_on(ref, 0),
                "No.",
                read_on(ref, 0),
                "Yes.",
            ]
            await say(runner, session="another")
            await say(runner)

    asyncio.run(main())
    refused, opened = (
        responses(server.requests[n])[-1]["response"] for n in (3, 5)
    )
    assert "nothing is kept under" in refused["error"]
    assert opened["output"].startswith(LONG[:5_000])


def test_an_agent_without_functions_of_its_own_is_offered_none(serve):
    from pydantic import BaseModel

    class Verdict(BaseModel):
        cause: str

    server = serve("gemini", [json.dumps({"cause": "the tide"})])
    played(
        server,
        UllageAdkPlugin(recall=True),
        "Judge.",
        tools=(),
        output_schema=Verdict,
    )
    assert functions(server.requests[0]) == []
    assert (
        server.requests[0].body["generationConfig"]["responseMimeType"]
        == "application/json"
    )


# 3. Usage, cost and the hard budget


@pytest.mark.says(
    "multi-stage-strategy",
    "3. Usage & Cost Tracking",
    "**Token Auditing**: Exact prompt and candidate token counts are recorded via `UsageTracker`.",
    lives="ullage.integrations.adk",
)
@pytest.mark.parametrize("mode", [StreamingMode.NONE, StreamingMode.SSE])
def test_every_call_is_counted_once_streamed_or_not(serve, mode):
    server = serve("gemini", [*steps(4), "Found it."])

    async def main():
        plugin = UllageAdkPlugin()
        async with running(agent_of(server), plugin) as runner:
            await say(runner, run_config=RunConfig(streaming_mode=mode))
            return plugin.family(await kept(runner)).budget

    budget = asyncio.run(main())
    told = [body["usageMetadata"] for body in server.answered]
    assert [call.usage.input_tokens for call in budget.calls] == [
        each["promptTokenCount"] for each in told
    ]
    assert [call.usage.output_tokens for call in budget.calls] == [
        each["candidatesTokenCount"] + each.get("thoughtsTokenCount", 0)
        for each in told
    ]
    assert budget.spent.cost_usd > 0


class Streaming(BaseLlm):
    """A model that tells its usage with every part of a reply, as Gemini does."""

    async def generate_content_async(self, llm_request, stream=False):
        """Two parts, the whole, and the end of the stream."""
        for said, partial_, counted in (
            ("Fo", True, 2),
            ("Found", True, 4),
            ("Found it.", None, 6),
        ):
            yield self._part(said, partial_, counted)
        yield self._part("", None, 6)

    def _part(self, said, partial_, counted):
        counts = {"prompt_token_count": 100, "candidates_token_count": counted}
        parts = [{"text": said}] if said else []
        content = {"role": "model", "parts": parts}
        told = {
            "content": content,
            "partial": partial_,
            "usage_metadata": counts,
        }
        return LlmResponse.model_validate(told)


def test_of_a_stream_that_tells_its_usage_with_each_part_the_whole_counts():
    async def main():
        plugin = UllageAdkPlugin()
        agent = Agent(name="a", model=Streaming(model="gemini-2.5-pro"))
        async with running(agent, plugin) as runner:
            await say(
                runner, run_config=RunConfig(streaming_mode=StreamingMode.SSE)
            )
            return plugin.family(await kept(runner)).budget

    (call,) = asyncio.run(main()).calls
    assert (call.usage.input_tokens, call.usage.output_tokens) == (100, 6)


@pytest.mark.says(
    "multi-stage-strategy",
    "3. Usage & Cost Tracking",
    "**Hard Budgeting**: A session-wide token budget can be enforced via "
    "`SRE_AGENT_TOKEN_BUDGET` (environment variable).",
    lives="ullage.integrations.adk",
)
@pytest.mark.says(
    "multi-stage-strategy",
    "3. Usage & Cost Tracking",
    "If exceeded, the agent will pause and ask to summarize findings with available data.",
    lives="ullage.integrations.adk",
)
def test_once_the_budget_is_spent_the_agent_sums_up_and_pauses(
    serve, tmp_path, monkeypatch
):
    monkeypatch.setenv("SRE_AGENT_TOKEN_BUDGET", "20,000")
    summary = "So far: logs 0 to 4 say nothing of it."

    def replies(captured):
        choice = captured.body.get("toolConfig", {}).get(
            "functionCallingConfig", {}
        )
        return (
            summary
            if choice.get("mode") == "NONE"
            else steps(1, len(server.requests))[0]
        )

    server = serve("gemini", replies, strict=True)
    service = partial(new_service, "sqlite", tmp_path)
    events, session, family = played(
        server, UllageAdkPlugin.from_env(), "Find it.", service=service()
    )
    assert events[-1].content.parts[0].text == summary
    *calls, last = server.requests
    assert all("toolConfig" not in captured.body for captured in calls)
    assert (
        contents(last)[-1]["parts"][0]["text"] == family.budget.allowance.words
    )
    assert family.budget.allowance.words not in str(session.events)
    assert family.budget.spent.tokens > 20_000
    made = len(server.requests)

    # In this process it is over; another one that goes on from the session gets a summary too.
    monkeypatch.setenv("SRE_AGENT_TOKEN_BUDGET", "")
    again = UllageAdkPlugin(budget=partial(Budget, tokens=20_000))
    events, session, family = played(
        server, again, "Go on.", "Please.", service=service()
    )
    assert len(server.requests) == made + 1
    assert events[0].content.parts[0].text == summary
    assert events[-1].error_code == "BUDGET_EXCEEDED"
    assert events[-1].error_message.startswith(
        "the budget of 20,000 tokens is spent ("
    )
    assert session.state["ullage:spent:investigator"]["calls"] == made + 1


@pytest.mark.says(
    "multi-stage-strategy",
    "Configuration",
    "`SRE_AGENT_TOKEN_BUDGET` | `0` (unlimited) | Max total tokens per session before halting.",
    lives="ullage.integrations.adk",
)
def test_without_the_variable_there_is_no_limit_and_nonsense_is_refused(
    serve, monkeypatch
):
    monkeypatch.delenv("SRE_AGENT_TOKEN_BUDGET", raising=False)
    server = serve("gemini", [*steps(12), "Found it."])
    events, _, family = played(
        server, UllageAdkPlugin.from_env(), "Find the fault."
    )
    assert events[-1].content.parts[0].text == "Found it."
    assert not family.budget.allowance.is_limited
    monkeypatch.setenv("SRE_AGENT_TOKEN_BUDGET", "20k")
    with pytest.raises(ConfigError, match="SRE_AGENT_TOKEN_BUDGET"):
        UllageAdkPlugin.from_env()


def test_each_adk_session_has_a_budget_of_its_own(serve):
    server = serve(
        "gemini",
        lambda _: steps(1)[0] if len(server.requests) % 3 < 2 else "Done.",
    )

    async def main():
        plugin = UllageAdkPlugin(budget=partial(Budget, tokens=10_000), most=1)
        async with running(agent_of(server), plugin) as runner:
            for session in ("one", "two", "one"):
                await say(runner, session=session)
            one, two = await kept(runner, "one"), await kept(runner, "two")
            told = [
                each.state["ullage:spent:investigator"]["calls"]
                for each in (one, two)
            ]
            return (
                told,
                plugin.family(one).budget.spent.calls,
                len(plugin.sessions),
            )

    told, held, sessions = asyncio.run(main())
    assert sum(told) == len(server.requests)
    assert (told[0], sessions) == (
        held,
        1,
    )  # it was let go, and went on from its state


def test_what_was_spent_is_told_after_closing_and_by_a_plugin_that_was_asked_nothing(
    serve,
):
    server = serve("gemini", lambda _: "Done.")
    plugin = UllageAdkPlugin()
    _, session, _ = played(server, plugin, "Find the fault.", "Please.")
    gc.collect()
    for each in (plugin, UllageAdkPlugin()):
        assert each.family(session).budget.spent.calls == 2


def test_a_request_whose_history_the_provider_holds_is_left_alone():
    plugin = UllageAdkPlugin()
    for request in (
        LlmRequest(),
        LlmRequest(previous_interaction_id="x", contents=[ASKED]),
    ):
        before = request.model_copy()
        came = plugin.before_model_callback(
            callback_context=None, llm_request=request
        )
        assert asyncio.run(came) is None
        assert request == before


@pytest.mark.parametrize(
    "settings",
    [
        {"most": 0},
        {"policy": "none such"},
        {"recall": 7, "store": "redis://x"},
    ],
    ids=str,
)
def test_a_bad_setting_is_refused_when_the_plugin_is_made(settings):
    with pytest.raises(ConfigError):
        UllageAdkPlugin(**settings)


def test_what_a_human_answers_by_a_long_running_tool_is_the_users(serve):
    """ADK has no other sign of it; it is quoted whole, as user text is, when it leaves the view."""
    answer = "approved-XYZ, but never on a Friday and never twice"

    def may_i() -> dict:
        """Asks a human."""
        return {"status": "pending"}

    async def main():
        replies = [
            Reply("", [Call("may_i", {})]),
            "I wait.",
            *steps(40),
            "Done.",
        ]
        server = serve("gemini", replies)
        limits = Limits(window_tokens=20_000)
        tools = (LongRunningFunctionTool(may_i), world.read_file)
        plugin = UllageAdkPlugin(
            policy="default", limits=limits, user_tools=["ask_desk"]
        )
        async with running(agent_of(server, tools=tools), plugin) as runner:
            events = await say(runner)
            calls = [
                call for event in events for call in event.get_function_calls()
            ]
            given = types.FunctionResponse(
                id=calls[0].id, name="may_i", response={"status": answer}
            )
            message = types.Content(
                role="user", parts=[types.Part(function_response=given)]
            )
            go_on = runner.run_async(
                user_id=USER, session_id=SESSION, new_message=message
            )
            async for _ in go_on:
                pass
            session = plugin.family(await kept(runner)).sessions[0]
        return server, session

    server, session = asyncio.run(main())
    assert session.settings.user_tools == ("ask_desk", "may_i")
    assert session.window.summaries
    assert answer in server.requests[-1].raw.decode()
