"""The recall tools as data, for whoever offers and runs them itself."""

import asyncio
import json

import pytest

from tests.sessions import SMALL, long_history, new_session, request
from tests.world import MODEL
from ullage import AsyncSession, ConfigError, Session, ToolSpec, recall_tools
from ullage.core.history.canon import ref_of
from ullage.documents import preset
from ullage.wires import FORMATS

every = pytest.mark.parametrize("format", ["openai-chat", "anthropic"])


def fitted(format, **more):
    session = new_session(format, **more)
    view = session.fit(request(format, long_history(format)))
    return session, view, ref_of("line 3\n" * 300)


@every
def test_the_tools_are_those_that_a_request_is_given(format):
    session, view, _ = fitted(format)
    wire = FORMATS[format]
    assert [wire.tool(spec) for spec in session.tools] == list(view["tools"])
    assert session.tools == recall_tools()


@pytest.mark.parametrize("policy", ["default", "output_cache", "continuation"])
def test_a_policy_says_which_tools_its_notices_speak_of(policy):
    specs = recall_tools(policy)
    assert [spec.name for spec in specs] == [
        s.name for s in preset(policy).toolset.tools
    ]
    chosen = preset(policy)
    assert recall_tools(chosen) is chosen.toolset.tools
    for spec in specs:
        assert isinstance(spec, ToolSpec)
        assert json.loads(json.dumps(spec.parameters))["type"] == "object"
        assert spec.description


@every
@pytest.mark.parametrize("as_text", [False, True])
def test_a_call_is_answered_by_its_name_and_arguments(format, as_text):
    session, _, ref = fitted(format)
    arguments = {"tool_call_id": ref, "offset": 0}
    given = session.answer(
        "get_continuation", json.dumps(arguments) if as_text else arguments
    )
    assert "line 3" in given.text
    assert given.ref == ref
    assert not given.is_error


@every
@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("get_continuation", {"tool_call_id": "no such"}),
        ("get_continuation", {}),
        ("get_continuation", "{"),
        ("get_continuation", {"tool_call_id": object()}),
        ("tool_output_cache_grep", {"ref_id": "x"}),
        ("no_such_tool", {}),
    ],
)
def test_what_is_wrong_with_a_call_is_told_to_the_model(
    format, name, arguments
):
    session, _, _ = fitted(format)
    given = session.answer(name, arguments, "call_9")
    assert given.is_error
    assert given.text


def test_after_a_clash_the_tools_have_the_names_of_the_notices():
    theirs = [
        FORMATS["openai-chat"].tool(
            ToolSpec("get_continuation", "Mine.", {"type": "object"})
        )
    ]
    session = new_session("openai-chat")
    session.fit(
        request("openai-chat", long_history("openai-chat"), tools=theirs)
    )
    assert all(spec.name.startswith("ullage_") for spec in session.tools)
    ref = ref_of("line 3\n" * 300)
    assert not session.answer(
        "ullage_get_continuation", {"tool_call_id": ref}
    ).is_error


# ── after a restart, before anything was fitted ──────────────────────────────────────────


@every
def test_tools_may_run_before_the_first_request(format):
    """A framework that goes on after a restart may run its tools first."""
    _, _, ref = fitted(format)
    asked = request(format, long_history(format))
    arguments = {"tool_call_id": ref}
    again = new_session(format)
    with pytest.raises(ConfigError, match="nothing was fitted yet"):
        again.answer("get_continuation", arguments)
    assert (
        again.answer("get_continuation", arguments, request=asked).ref == ref
    )
    assert again.fit(asked) == new_session(format).fit(asked)


def test_a_call_is_recalled_before_the_first_request_too():
    _, _, ref = fitted("openai-chat")
    asked = request("openai-chat", long_history("openai-chat"))
    arguments = json.dumps({"tool_call_id": ref})
    call = {
        "id": "r",
        "function": {"name": "get_continuation", "arguments": arguments},
    }
    result = new_session("openai-chat").recall(call, request=asked)
    assert "line 3" in result["content"]


def test_the_twin_for_an_event_loop_does_the_same():
    _, _, ref = fitted("anthropic")
    asked = request("anthropic", long_history("anthropic"))

    async def talk():
        session = AsyncSession(MODEL["anthropic"], limits=SMALL, recall=True)
        given = await session.answer(
            "get_continuation", {"tool_call_id": ref}, request=asked
        )
        await session.close()
        return given

    session = Session(MODEL["anthropic"], limits=SMALL, recall=True)
    arguments = {"tool_call_id": ref}
    assert asyncio.run(talk()) == session.answer(
        "get_continuation", arguments, request=asked
    )


# ── offered by the host ──────────────────────────────────────────────────────────────────


def as_the_host_has_them(format):
    """Our tools as a framework gives them to the provider: with more in them than we wrote."""
    wire = FORMATS[format]
    specs = [
        ToolSpec(
            spec.name,
            spec.description,
            {**spec.parameters, "additionalProperties": False},
        )
        for spec in recall_tools()
    ]
    return [wire.tool(spec) for spec in specs]


@every
def test_a_host_that_offers_the_tools_is_given_none_and_owns_the_calls(format):
    theirs = as_the_host_has_them(format)
    session = new_session(format, recall="host")
    view = session.fit(request(format, long_history(format), tools=theirs))
    assert view["tools"] == theirs
    assert session.tools == recall_tools()
    call = {
        "type": "tool_use",
        "id": "c",
        "name": "get_continuation",
        "input": {},
    }
    if format == "openai-chat":
        call = {
            "id": "c",
            "function": {"name": "get_continuation", "arguments": "{}"},
        }
    assert view.owns(call)
    assert session.owns(call)
    shown = json.dumps(view[FORMATS[format].key])
    assert "ullage_" not in shown
    assert any(spec.name in shown for spec in recall_tools())
    assert (
        "line 3"
        in session.answer(
            "get_continuation", {"tool_call_id": ref_of("line 3\n" * 300)}
        ).text
    )


def test_without_saying_so_a_changed_definition_is_a_clash():
    theirs = as_the_host_has_them("openai-chat")
    session = new_session("openai-chat")
    view = session.fit(
        request("openai-chat", long_history("openai-chat"), tools=theirs)
    )
    assert len(view["tools"]) == 2 * len(theirs)
