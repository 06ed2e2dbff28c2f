"""``ullage window`` and the commands that decide, on the store of an agent that runs."""

import json

import pytest

from tests.cli.terminal import ullage
from tests.session.test_deciding import fit, gone, shown
from tests.session.test_stored import talked
from ullage.tools.cli import decide, window  # noqa: F401


@pytest.fixture
def agent(tmp_path):
    session, messages = talked("anthropic", tmp_path / "store.db")
    yield session, messages, ("--store", str(tmp_path / "store.db"))
    session.close()


def test_the_list_and_one_conversation(agent):
    _, messages, store = agent
    listed = json.loads(ullage("window", *store, "--json").text)
    assert [each["messages"] for each in listed] == [len(messages)]
    name = listed[0]["name"]
    assert name in ullage("window", *store).text
    one = json.loads(ullage("window", name, *store, "--json").text)
    assert {text["state"] for text in one["texts"]} >= {"whole", "set aside"}
    assert one["batches"]
    told = ullage("window", "last", *store).text
    assert told.startswith(
        f"{name}: {len(messages)} messages for claude-sonnet-4-5"
    )
    assert "set aside by b" in told
    lines = ullage("window", "last", "--all", *store).text.splitlines()
    assert len(lines) > len(told.splitlines())


def test_what_is_decided_is_in_the_agents_next_request(agent):
    session, messages, store = agent
    name = gone(session)[0]
    dry = ullage("pin", name, "--dry-run", *store).text
    assert "would be decided" in dry
    assert "written to the prompt cache again" in dry
    pinned = ullage(
        "pin", name, "--reason", "the rules", "--author", "ann", *store
    ).text
    assert "Take it back: ullage undo d" in pinned
    ullage("note", "Never touch main.", *store)
    view = fit(session, "anthropic", messages)
    assert "Never touch main." in shown(view)
    assert name not in gone(session)
    told = ullage("window", "last", *store).text
    assert "whole, pinned" in told
    assert "by ann: the rules" in told
    made = json.loads(ullage("undo", "--json", *store).text)
    assert made["what"].startswith("undo d")
    ullage("drop", f"m{len(messages)}", *store)
    ullage("restore", gone(session)[-1], "--when", "end", *store)
    view = fit(session, "anthropic", messages)
    assert "Never touch main." not in shown(view)
    assert "taken out by the user" in shown(view)
    assert "shown again for the user" in shown(view)
    told = ullage("window", "last", *store).text
    assert told.count("copied further down") == 1
    ullage("undo", *store)
    fit(session, "anthropic", messages)
    assert "copied further down" not in ullage("window", "last", *store).text


def test_what_was_not_typed_as_it_should_be(agent, tmp_path):
    _, _, store = agent
    made = json.loads(ullage("note", "Be kind.", "--json", *store).text)
    note = made["decision"]
    one = json.loads(ullage("window", "last", "--json", *store).text)
    batch = next(text["batch"] for text in one["texts"] if text["batch"])
    for words, status, said in (
        (("pin", "m999"), 1, "has nothing of this name: m999"),
        (("pin", "m3", "--lines", "10"), 2, "give it as 10-40"),
        (("note", " "), 1, "the note is empty"),
        (("window", "cnothing"), 1, "no such conversation"),
        (("undo", "bnothing"), 1, "has nothing of this name"),
        (("restore", batch), 1, f"all that it took out: undo {batch}"),
        (("restore", "m3-m9"), 1, f"taken back by undo {batch}"),
        (("drop", "m3.1 – m9.2"), 1, "is a range"),
        (("pin", note), 1, f"To take it back: undo {note}"),
    ):
        ran = ullage(*words, *store)
        assert (ran.status, said in ran.err) == (status, True), ran.err
