"""``ullage ls``: the conversations of a store, newest first, and what each saved."""

import json

import pytest

from tests.cli.running import SDK_AGENT, Machine
from tests.cli.terminal import ullage
from tests.servers import Call, Reply
from tests.session.test_stored import talked
from ullage.integrations._sessions import HostSessions
from ullage.stores import SqliteStore
from ullage.tools.cli import ls  # noqa: F401
from ullage.tools.cli._options import typable


def test_what_a_run_kept_is_listed_with_its_client(tmp_path, serve):
    machine = Machine(tmp_path)
    machine.run_agent(serve("anthropic", ["Done."]), agent=SDK_AGENT)
    listed = machine.ullage("ls", COLUMNS="140").text
    heading, row = listed.splitlines()[:2]
    assert heading.split()[:4] == ["conversation", "last", "used", "client"]
    assert " Anthropic " in row
    assert " claude-opus-4-8 " in row
    assert row.rstrip().endswith("Count the files, please.")


UUID = "0d9b7a3e-52f1-4a0c-9a53-8a1f2f6f7c11"


def test_a_conversation_is_found_by_its_client_s_own_name(tmp_path, serve):
    """As Claude Code's log is called; the first eight characters do."""
    machine = Machine(tmp_path)
    machine.environment["SESSION"] = UUID
    replies = [Reply("", [Call("bash", {"c": "ls"})]), "Done."]
    machine.run_agent(serve("anthropic", replies))
    (row,) = json.loads(machine.ullage("ls", "--json").text)
    assert row["client_session"] == UUID
    for name in (UUID, UUID[:8], row["name"], "last"):
        shown = machine.ullage("window", name)
        assert shown.text.startswith(row["name"]), shown.err
    inspected = machine.ullage("inspect", "--run", UUID)
    assert "2 requests" in inspected.text
    assert machine.ullage("window", UUID[:7]).status == 1


@pytest.fixture
def store(tmp_path):
    path = tmp_path / "store.db"
    for wire in ("anthropic", "openai-chat"):
        session, _ = talked(wire, path)
        session.close()
    return path


def test_the_newest_is_first_and_the_limit_is_told(store):
    listed = ullage("ls", "--store", store, "--json").json
    assert len(listed) == 2
    assert listed[0]["used_s"] >= listed[1]["used_s"]
    assert all(row["raw_tokens"] > row["sent_tokens"] > 0 for row in listed)
    shown = ullage("ls", "--store", store, "-n", "1").text
    assert listed[0]["name"] in shown
    assert listed[1]["name"] not in shown
    assert "1 older ones are not listed: --limit 2" in shown


@pytest.mark.parametrize("columns", ["60", "80", "120"])
def test_a_row_is_one_line_at_any_width(store, columns):
    shown = ullage("ls", "--store", store, env={"COLUMNS": columns}).text
    lines = shown.splitlines()
    rows = [line for line in lines if "not shown at this width" not in line]
    assert len(rows) == 3
    assert rows[0].split()[-1] == "begins"
    assert max(map(len, lines)) <= int(columns)


def test_an_empty_store_is_told(tmp_path):
    path = tmp_path / "empty.db"
    SqliteStore(path).close()
    ran = ullage("ls", "--store", path)
    assert ran.status == 0
    assert ran.text.startswith("No conversation is kept for this tenant. ")


def test_an_adapter_s_conversations_are_found_by_the_command_that_is_told(
    tmp_path,
):
    """An adapter names the tenant by the framework's thread: nobody can guess that."""
    path = tmp_path / "kept.db"
    sessions = HostSessions("openai-chat", store=path)
    asked = {"messages": [{"role": "user", "content": "Find the needle."}]}
    session = sessions.opened(
        '["t", "m"]', {}, parent='["t"]', model="gpt-4.1"
    )
    session.call(lambda **view: {"usage": USAGE}, model="gpt-4.1", **asked)
    sessions.close()
    told = ullage("ls", "--store", path).text.splitlines()
    assert told[1:] == ["  ullage ls --tenant t"]
    for name in ("t", '["t"]'):
        (row,) = ullage("ls", path, "--json", "--tenant", name).json
        assert row["model"] == "gpt-4.1"
    listed = ullage("window", path).text.splitlines()
    assert listed[1:] == ["  ullage window --tenant t"]
    shown = ullage("window", "last", "--store", path, "--tenant", "t").text
    assert shown.startswith(f"{row['name']}: ")
    noted = ullage("note", "Be kind.", "--store", path, "--tenant", "t").text
    assert noted.startswith(f"{row['name']}, d")


def test_the_name_of_a_tenant_rewrites_nothing_on_a_terminal(tmp_path):
    """A thread may be named by anybody who writes to the program."""
    path = tmp_path / "kept.db"
    sessions = HostSessions("openai-chat", store=path)
    asked = {"messages": [{"role": "user", "content": "Find the needle."}]}
    session = sessions.opened(
        '["\\u001b[2Jt"]', {}, parent="", model="gpt-4.1"
    )
    session.call(lambda **view: {"usage": USAGE}, model="gpt-4.1", **asked)
    sessions.close()
    for command in ("ls", "window"):
        told = ullage(command, "--store", path).text
        assert f"ullage {command} --tenant '\\x1b[2Jt'" in told
        assert "\x1b" not in told


def test_a_store_may_be_named_first(store):
    listed = ullage("ls", store, "--json").json
    assert len(listed) == 2
    assert len(ullage("window", store, "--json").json) == 2
    newest = ullage("last", store, "--no-browser", "--json").json
    assert newest["name"] in {row["name"] for row in listed}
    assert ullage("report", store, "--json").status == 0
    for command in ("ls", "last", "report", "window"):
        ran = ullage(command, store.parent / "none.db")
        assert ran.status == 1
        assert "Name one: --store PATH" in ran.err


@pytest.mark.parametrize(
    ("tenant", "typed"),
    [
        ('["app", "ann", "one"]', "app/ann/one"),
        ('[null, "incident-7"]', "incident-7"),
        ("ann", "ann"),
        ('["a", 3]', '["a", 3]'),
    ],
)
def test_a_tenant_is_told_as_people_can_type_it(tenant, typed):
    assert typable(tenant) == typed


USAGE = {"prompt_tokens": 9, "completion_tokens": 9}
