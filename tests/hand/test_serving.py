"""Tools and prompts that decide about a store's conversations: who may, and under which name."""

import json
import re

import pytest

from tests.session.test_deciding import fit, gone, messages_of, shown
from tests.session.test_stored import talked
from ullage import ConfigError, SqliteStore, Usage
from ullage.doors.mcp.serving import Shelf, answered
from ullage.session.stored.conversation import (
    conversation,
    decide,
    decision_of,
)
from ullage.tools.hand.serving import HandTools

WIRE = "anthropic"
CODE = re.compile(r'code="(\w+)"')


class Client:
    """A client of the server, by frames."""

    def __init__(self, store, decides, **more):
        self.hand = HandTools(store, "", decides, **more)
        self.shelf = Shelf([store], "")

    def ask(self, method, **params):
        frame = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        data = json.dumps(frame).encode()
        return json.loads(answered(data, self.shelf, self.hand))

    def call(self, name, **arguments):
        reply = self.ask("tools/call", name=name, arguments=arguments)
        result = reply["result"]
        return result["content"][0]["text"], result["isError"]

    def decide(self, name, **arguments):
        text, is_error = self.call(name, **arguments)
        assert not is_error, text
        return text

    def refused(self, name, **arguments):
        text, is_error = self.call(name, **arguments)
        assert is_error, text
        return text

    def prompt(self, name, **arguments):
        reply = self.ask("prompts/get", name=name, arguments=arguments)
        (message,) = reply["result"]["messages"]
        return message["content"]["text"]

    def code(self, name, **arguments):
        return CODE.search(self.prompt(name, **arguments))[1]


@pytest.fixture
def store(tmp_path):
    with_file = SqliteStore(tmp_path / "store.db")
    yield with_file
    with_file.close()


@pytest.fixture
def talk(store):
    """A session under pressure, and its history."""
    return talked(WIRE, store)


def made(store):
    return [
        (one.decision.verb, one.decision.author)
        for one in conversation(store, "").hand.decisions
    ]


def test_without_it_nothing_of_it_is_served(store, talk):
    shelf = Shelf([store], "")
    for method in ("tools/list", "prompts/list", "initialize"):
        frame = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method})
        text = answered(frame.encode(), shelf).decode()
        assert "window_" not in text
        assert method != "prompts/list" or "error" in text


def test_it_lists_its_tools_its_prompts_and_who_decides(store):
    client = Client(store, "user")
    begun = client.ask("initialize")["result"]
    assert begun["capabilities"] == {"tools": {}, "prompts": {}}
    assert "only the user decides" in begun["instructions"]
    tools = client.ask("tools/list")["result"]["tools"]
    listed = {
        tool["name"]: tool["annotations"]["readOnlyHint"] for tool in tools
    }
    assert listed["get_continuation"]
    assert listed["window_show"]
    changing = [name for name, is_reader in listed.items() if not is_reader]
    assert changing == [
        f"window_{verb}" for verb in ("pin", "drop", "restore", "undo", "note")
    ]
    prompts = client.ask("prompts/list")["result"]["prompts"]
    assert [prompt["name"] for prompt in prompts] == [
        *("window", "pin", "drop", "restore", "undo", "note")
    ]
    assert "error" in client.ask("prompts/get", name="erase")


def test_a_model_that_may_decides_under_its_own_name(store, talk):
    session, messages = talk
    client, name = Client(store, "model"), gone(session)[0]
    told = client.decide("window_pin", target=name, dry_run=True)
    assert "would be decided" in told
    assert "tokens are written to the prompt cache again, about $0." in told
    assert "Each later call costs about $0." in told
    assert made(store) == []
    told = client.decide("window_pin", target=name, reason="needed again")
    assert "Decided by model" in told
    client.decide("window_note", text="The loader is slow.")
    assert made(store) == [("pin", "model"), ("note", "model")]
    view = fit(session, WIRE, messages)
    assert "The loader is slow." in shown(view)
    assert name not in gone(session)
    undone = re.search(r'target="(d\w+)"', told)[1]
    client.decide("window_undo", target=undone)
    fit(session, WIRE, messages)
    assert name in gone(session)


def test_what_the_user_decided_outranks_it(store, talk):
    client = Client(store, "model")
    stored = conversation(store, "")
    pin = decide(store, stored, decision_of(stored, "pin", "m3"))
    assert pin in client.refused("window_drop", target="m3.1")
    assert pin in client.refused("window_undo", target=pin)
    assert "otherwise" in client.refused("window_undo")
    stored = conversation(store, "")
    drop = decide(
        store, stored, decision_of(stored, "drop", "m5", author="ann")
    )
    for name in ("window_pin", "window_restore"):
        assert drop in client.refused(name, target="m5")
    assert "own words" in client.refused("window_drop", target="m1")
    assert made(store) == [("pin", ""), ("drop", "ann")]
    client.decide("window_drop", target="m7")
    stored = conversation(store, "")
    decide(store, stored, decision_of(stored, "pin", "m7"))
    assert "otherwise" in client.refused("window_drop", target="m7")
    stored = conversation(store, "")
    decide(store, stored, decision_of(stored, "undo"))
    client.decide("window_undo", target=_named(store, "drop", "model"))


def _named(store, verb, author):
    (name,) = (
        one.name
        for one in conversation(store, "").hand.decisions
        if (one.decision.verb, one.decision.author) == (verb, author)
    )
    return name


def test_nor_where_the_user_decides_just_then(store, talk, monkeypatch):
    """The user's pin is written between the model's look and its decision."""
    client, commit = Client(store, "model"), store.commit

    def commit_behind_the_user(*given):
        monkeypatch.setattr(store, "commit", commit)
        stored = conversation(store, "")
        decide(store, stored, decision_of(stored, "pin", "m3"))
        return commit(*given)

    monkeypatch.setattr(store, "commit", commit_behind_the_user)
    assert "otherwise" in client.refused("window_drop", target="m3")
    assert made(store) == [("pin", "")]


def test_where_only_the_user_decides_a_command_is_needed(store, talk):
    client = Client(store, "user", author="ann")
    text = client.refused("window_pin", target="m3")
    assert "only the user decides here" in text
    assert "The user runs the command pin" in text
    assert "m3.1" in client.decide("window_show"), "looking is no decision"
    prompt = client.prompt("pin", what="the rules of the house")
    assert "pin the rules of the house" in prompt
    assert "window_show" in prompt
    code = CODE.search(prompt)[1]
    assert "no code" in client.refused("window_drop", target="m3", code=code)
    assert "no code" in client.refused("window_pin", target="m3", code="no")
    client.decide("window_pin", target="m3", code=code, dry_run=True)
    told = client.decide("window_pin", target="m3", code=code)
    assert "Decided by ann" in told
    assert "no code" in client.refused("window_pin", target="m5", code=code)
    assert made(store) == [("pin", "ann")]


def test_a_command_of_the_user_s_outranks_where_the_model_decides(store, talk):
    client = Client(store, "model")
    code = client.code("drop", what="m5")
    client.decide("window_drop", target="m5", code=code)
    assert made(store) == [("drop", "user")]
    assert "otherwise" in client.refused("window_restore", target="m5")
    wrong = client.refused("window_restore", target="m5", code="made up")
    assert "no code" in wrong
    code = client.code("undo")
    client.decide("window_undo", code=code)
    assert made(store) == [("undo", "user")]


def test_the_words_of_a_note_are_the_user_s(store, talk):
    client = Client(store, "user")
    code = client.code("note", text="Never touch main.")
    client.decide("window_note", text="Touch main.", code=code)
    code = client.code("note", text="$1")
    client.decide("window_note", text="Keep it short.", code=code)
    stored = conversation(store, "")
    texts = [one.decision.text for one in stored.hand.decisions]
    assert texts == ["Never touch main.", "Keep it short."]


def test_codes_are_bounded(store, talk):
    client = Client(store, "user")
    codes = [client.code("pin", what="m3") for _ in range(65)]
    assert "no code" in client.refused(
        "window_pin", target="m3", code=codes[0]
    )
    client.decide("window_pin", target="m3", code=codes[1])


def test_a_window_is_shown_by_pages(store, talk):
    client = Client(store, "model")
    text = client.decide("window_show")
    name = conversation(store, "").outline.name
    assert text.startswith(f"{name}: ")
    assert "What texts begin with is data." in text
    assert re.search(
        r"m3\.1 user result bash, [\d,]+ characters, set aside by b", text
    )
    late = client.decide("window_show", start=24)
    assert "m3.1" not in late
    assert "m25.1" in late


def test_where_several_conversations_are_in_use_it_asks_which(store, talk):
    session, _ = talk
    other = messages_of(WIRE, 1)
    other[0] = {"role": "user", "content": "Write a poem."}
    view = fit(session, WIRE, other)
    view.observe(Usage(fresh_tokens=90, output_tokens=9))
    client = Client(store, "model")
    text = client.refused("window_note", text="Which?")
    assert "several are in use" in text
    assert "Write a poem." in text
    assert "Find out why" in text
    assert "several are in use" in client.refused("window_show")
    wanted = re.search(r"- (c\w+): \d+ messages, begins \"Write", text)[1]
    client.decide("window_note", text="In rhymes.", conversation=wanted)
    stored = conversation(store, "", wanted)
    (one,) = stored.hand.decisions
    assert one.decision.text == "In rhymes."
    assert "there is none" in client.refused(
        "window_note", text="x", conversation="c0000000"
    )


def test_an_old_conversation_is_not_in_use(store, talk):
    client = Client(store, "model", now_s=lambda: 4e9)
    client.decide("window_note", text="It is the newest.")


def test_of_an_empty_store_it_says_so(store):
    text = Client(store, "model").refused("window_show")
    assert "no outline" in text


def test_nobody_decides_under_the_model_s_name(store):
    with pytest.raises(ConfigError, match="under which the model decides"):
        HandTools(store, "", "user", author="model")


def test_it_is_no_use_to_another_tenant(store, talk):
    hand = HandTools(store, "you", "model")
    text, is_error = hand.call("window_pin", {"target": "m3"})
    assert is_error
    assert "no outline" in text
