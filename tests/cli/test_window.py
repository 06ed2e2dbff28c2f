"""``ullage window`` and the commands that decide, on the store of an agent that runs."""

import json
import re

import pytest

from tests.cli.terminal import ullage
from tests.session.test_deciding import (
    fit,
    gone,
    messages_of,
    new_session,
    shown,
)
from tests.session.test_stored import talked
from ullage import Usage
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


LONG_TOOL = (
    "mcp__a_server_with_a_long_name__search_the_code_of_all_repositories"
)


@pytest.fixture(scope="module")
def long_named(tmp_path_factory):
    """A store whose tools have names as long as those of MCP servers."""
    path = tmp_path_factory.mktemp("long") / "kept.db"
    written = json.dumps(messages_of("anthropic", 12))
    names = json.loads(written.replace('"bash"', f'"{LONG_TOOL}"'))
    session = new_session("anthropic", store=path)
    for length in range(1, len(names) + 1, 2):
        view = fit(session, "anthropic", names[:length])
        view.observe(
            Usage(fresh_tokens=session._newest.tokens, output_tokens=9)
        )
    session.close()
    return "--store", str(path)


@pytest.mark.parametrize("width", [60, 80, 120])
@pytest.mark.parametrize("words", [("last",), ("last", "--all")])
def test_a_long_name_of_a_tool_breaks_no_table(long_named, width, words):
    env = {"COLUMNS": str(width)}
    text = ullage("window", *words, *long_named, env=env).text
    table = text.split("\nBatches, ")[0].splitlines()
    while not table[0].startswith("name "):
        del table[0]
    assert max(map(len, table)) <= width
    headings = table[0].split()
    assert [*headings[:1], headings[-1]] == ["name", "begins"]
    assert ("role" in headings) == (width > 60)
    characters = [line for line in table if " result " in line]
    assert characters
    what = table[0].index("what")
    size = table[0].index("char")
    folded = "".join(line[what:size].strip() for line in table)
    assert LONG_TOOL in folded.replace(" ", "")


@pytest.mark.parametrize("width", [60, 80, 120])
def test_the_record_and_the_list_are_as_wide_as_the_terminal(
    long_named, width
):
    env = {"COLUMNS": str(width)}
    why = ullage("window", "--why", *long_named, env=env).text
    (heading,) = [
        n for n, line in enumerate(why.splitlines()) if line.startswith("tool")
    ]
    tables = why.splitlines()[heading:]
    assert max(map(len, tables[:-3])) <= width
    for command in ("window", "ls"):
        listed = ullage(command, *long_named, env=env).text
        lines = listed.splitlines()
        assert max(map(len, lines)) <= width
        assert lines[0].split()[-1] == "begins"
        # a figure that is cut short is another figure
        assert re.search(r"\d…", listed) is None


def test_a_batch_is_called_as_the_record_calls_it(agent):
    _, _, store = agent
    told = ullage("window", "last", *store).text
    assert ": by ullage (record): " not in told
    assert "  by ullage (record): " in told


def test_two_stores_are_refused_by_every_command_that_takes_one(
    agent, tmp_path
):
    _, _, (_, address) = agent
    other = str(tmp_path / "other.db")
    for command in ("ls", "last", "report", "window"):
        ran = ullage(command, address, "--store", other)
        assert ran.status == 1
        assert f"two stores were given, {address!r}" in ran.err
        assert f"--store {other!r}. Give one of them." in ran.err
    listed = ullage("ls", address, "--store", address)
    assert listed.status == 0
    usual = {"ULLAGE_STORE": other}
    assert ullage("ls", address, env=usual).text == listed.text
