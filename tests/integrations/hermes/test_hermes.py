"""A real agent of Hermes, kept within its window by the engine that its entry point names."""

import copy
import itertools
import json
import sys

import pytest

pytest.importorskip(
    "hermes_cli", reason="hermes-agent is not installed (make hermes)"
)


from agent.context_engine import ContextEngine

from tests.integrations.hermes.world import (
    MODEL,
    agent,
    calls,
    home,
    says,
    upstream,
)
from tests.integrations.outputs import GREP, big, names_in, refs_in, story
from ullage.core.errors import ConfigError
from ullage.integrations.hermes import UllageEngine, register

LINES = 1_500
OURS = [GREP, f"ullage_{GREP}", f"ullage2_{GREP}"]
USER = {"role": "user", "content": "Find the slowest task."}


def log(n):
    return "\n".join(
        f"{i:05} worker{n} {i % 7} took {i * 37 % 1000} ms for task {i}"
        for i in range(LINES)
    )


@pytest.fixture
def folder(tmp_path, monkeypatch):
    from hermes_cli.plugins import get_plugin_manager

    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setenv("HERMES_HOME", str(tmp_path))
    monkeypatch.setenv("ULLAGE_STORE", str(tmp_path / "kept.db"))
    home(tmp_path)
    get_plugin_manager().discover_and_load(force=True)
    for n in range(6):
        (tmp_path / f"{n}.log").write_text(log(n))
    return tmp_path


def text_of(messages):
    return "\n".join(str(message.get("content") or "") for message in messages)


def answered(messages):
    """Whether each call has its result and each result its call."""
    asked = [
        call["id"]
        for message in messages
        for call in message.get("tool_calls") or ()
    ]
    given = [
        message["tool_call_id"]
        for message in messages
        if message["role"] == "tool"
    ]
    return sorted(asked) == sorted(given)


def test_an_agent_reads_more_than_its_window_holds_and_opens_what_left(folder):
    def script(request):
        step = len(server.sent)
        if step <= 6:
            path = str(folder / f"{step - 1}.log")
            return calls(
                f"c{step}", "read_file", path=path, offset=1, limit=LINES
            )
        if step == 7:
            ref = refs_in(text_of(request["messages"]))[0]
            arguments = {"tool_call_id": ref, "pattern": "task 777"}
            return calls("c7", "get_continuation", **arguments)
        return says("Found.")

    with upstream(script) as server:
        talking = agent(server, session_id="one")
        engine = talking.context_compressor
        assert isinstance(engine, UllageEngine)
        said = talking.run_conversation("Find the slowest task.")
        assert said["final_response"] == "Found."
        assert engine.compression_count >= 2
        sent = [request["messages"] for request in server.sent]
        assert all(len(json.dumps(body)) // 4 < 64_000 for body in sent)
        assert all(map(answered, sent))
        assert "Find the slowest task." in text_of(sent[-1])
        assert "took 749 ms for task 777" in sent[-1][-1]["content"]
        # a conversation that is taken up by another process
        server.sent.clear()
        ref = refs_in(text_of(said["messages"]))[0]
        arguments = {"tool_call_id": ref, "pattern": "task 778"}
        server.script = lambda request: (
            calls("d", "get_continuation", **arguments)
            if len(server.sent) == 1
            else says("Again.")
        )
        later = agent(server, session_id="one")
        later.run_conversation(
            "And 778?", conversation_history=said["messages"]
        )
        assert "took 786 ms for task 778" in text_of(
            server.sent[-1]["messages"][-1:]
        )


def history(count):
    messages = [USER]
    for n in range(count):
        call = calls(f"c{n}", "read_file", path=f"{n}.log")
        result = {
            "role": "tool",
            "tool_call_id": f"c{n}",
            "content": log(n),
        }
        messages += [call, result]
    return messages


def engine_for(session="one", **settings):
    engine = UllageEngine(**{"store": "memory", **settings})
    engine.update_model(MODEL, 64_000)
    engine.on_session_start(session, model=MODEL)
    return engine


def test_a_history_is_compacted_below_the_threshold_and_not_changed():
    engine, messages = engine_for(), history(6)
    before = copy.deepcopy(messages)
    assert engine.should_compress(60_000)
    assert not engine.should_compress(30_000)
    shorter = engine.compress(messages, current_tokens=120_000)
    assert messages == before
    assert answered(shorter)
    assert len(json.dumps(shorter)) // 4 < engine.threshold_tokens * 0.8
    opened = [
        engine.handle_tool_call(
            "get_continuation", {"tool_call_id": ref}, messages=shorter
        )
        for ref in refs_in(text_of(shorter))
    ]
    assert opened
    assert all("result" in json.loads(text) for text in opened)
    assert engine.compress([]) == []


def test_a_session_that_hermes_splits_opens_what_left_before():
    engine = engine_for()
    shorter = engine.compress(history(6), current_tokens=120_000)
    (ref, *_) = refs_in(text_of(shorter))
    ask = {"tool_call_id": ref, "offset": 0}
    engine.on_session_start(
        "two", boundary_reason="compression", old_session_id="one"
    )
    kept = json.loads(
        engine.handle_tool_call("get_continuation", ask, messages=shorter)
    )
    assert "0.log" in kept["result"]
    engine.on_session_reset()
    engine.on_session_start("another", model=MODEL)
    refused = engine.handle_tool_call("get_continuation", ask, messages=[USER])
    assert "0.log" not in refused
    assert "error" in json.loads(refused)


def test_an_agent_of_an_agent_has_counts_of_its_own_and_the_same_store():
    engine = engine_for()
    engine.update_from_response({"prompt_tokens": 9, "total_tokens": 10})
    twin = copy.deepcopy(engine)
    assert (twin.last_prompt_tokens, engine.last_prompt_tokens) == (0, 9)
    assert twin.sessions.store is engine.sessions.store
    engine.update_from_response({"prompt_tokens": "many", "total_tokens": -1})
    assert (engine.last_prompt_tokens, engine.last_total_tokens) == (0, 0)


def test_where_each_request_is_selected_the_history_stays_whole(monkeypatch):
    """Of Hermes after 0.19, which no registry has: its method and its promise, as published."""
    engine, messages = engine_for(), [USER]
    monkeypatch.setattr(
        ContextEngine, "select_context", lambda *_, **__: None, raising=False
    )
    views = []
    for n in range(12):
        messages += [
            calls(f"c{n}", "read_file", path=f"{n}.log"),
            {"role": "tool", "tool_call_id": f"c{n}", "content": big(n)},
        ]
        before = copy.deepcopy(messages)
        views.append(
            engine.select_context(
                messages, conversation_messages=messages, budget_tokens=64_000
            )
        )
        assert messages == before
        tokens = len(json.dumps(views[-1])) // 4
        usage = {"prompt_tokens": tokens, "completion_tokens": 5}
        engine.update_from_response({**usage, "total_tokens": tokens + 5})
        assert not engine.should_compress(tokens)
        assert answered(views[-1])
        assert tokens < 64_000
    assert len(json.dumps(messages)) // 4 > 400_000
    repeated = [
        later[: len(view)] == view for view, later in itertools.pairwise(views)
    ]
    assert sum(repeated) >= len(repeated) - 3  # a batch breaks the prefix
    assert engine.select_context([{"role": 1}], budget_tokens=0) is None


def test_a_share_that_is_none_and_a_tool_that_is_not_ours():
    with pytest.raises(ConfigError):
        UllageEngine(store="memory", threshold_percent=1.5)
    assert "error" in json.loads(engine_for().handle_tool_call("x", {}))


def test_the_entry_point_registers_the_engine(folder):
    class Context:
        engine = None

        def register_context_engine(self, engine):
            self.engine = engine

    register(context := Context())
    assert context.engine.name == "ullage"


@pytest.fixture
def taken(request):
    """Names of tools of the user's, as a plugin of Hermes registers them."""
    from tools.registry import registry

    def tell(arguments, **more):
        return json.dumps(story(GREP)(arguments["chapter"]))

    properties = {"chapter": {"type": "string"}}
    for name in request.param:
        schema = {
            "name": name,
            "description": "Goes on with a story.",
            "parameters": {"type": "object", "properties": properties},
        }
        registry.register(name, "mine", schema, tell)
    yield request.param
    for name in request.param:
        registry.deregister(name)


@pytest.mark.parametrize("taken", [OURS[:1], OURS[:2]], ids=len, indirect=True)
def test_a_tool_of_the_users_keeps_its_name_and_ours_opens_all_the_same(
    folder, taken
):
    ours = OURS[len(taken)]

    def script(request):
        step = len(server.sent)
        if step <= 6:
            path = str(folder / f"{step - 1}.log")
            return calls(
                f"c{step}", "read_file", path=path, offset=1, limit=LINES
            )
        if step == 7:
            ref = refs_in(text_of(request["messages"]))[0]
            arguments = {"tool_call_id": ref, "pattern": "task 777"}
            return calls("c7", ours, **arguments)
        if step == 8:
            return calls("c8", GREP, chapter="two")
        return says("Found.")

    with upstream(script) as server:
        talking = agent(server, session_id="one", toolsets=["mine"])
        talking.run_conversation("Find the slowest task.")
    *_, asked, told = [request["messages"] for request in server.sent]
    for request in server.sent:
        names = [tool["function"]["name"] for tool in request["tools"]]
        shown = [name for name in names if name.endswith(GREP)]
        assert sorted(shown) == sorted([*taken, ours])
    assert {*names_in(text_of(asked))} == {ours}
    assert "took 749 ms for task 777" in asked[-1]["content"]
    assert "And then, in two, it rained." in told[-1]["content"]


@pytest.mark.parametrize("taken", [OURS], ids=len, indirect=True)
def test_where_the_user_has_every_name_no_notice_names_a_tool(taken):
    engine = engine_for()
    assert engine.get_tool_schemas() == []
    shorter = engine.compress(history(6), current_tokens=120_000)
    assert names_in(text_of(shorter)) == []
