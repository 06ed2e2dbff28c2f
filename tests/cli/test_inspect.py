"""`ullage inspect`: a live session, from the store it was given and its history."""

import json

import pytest

from tests.cli.terminal import told, ullage
from tests.cli.test_replay import trajectory
from ullage import Limits, Session

WINDOW = 16_000


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    """A session that ran over a history with a store, and the history as a request."""
    folder = tmp_path_factory.mktemp("played")
    messages = trajectory("one", 12)["messages"]
    limits = Limits(window_tokens=WINDOW)
    store = folder / "own.db"
    with Session(
        "gpt-4.1", store=store, limits=limits, recall=True
    ) as session:
        for length in [*range(1, len(messages), 2)]:
            session.fit({"model": "gpt-4.1", "messages": messages[:length]})
        refs = {event.ref for event in session.events if event.ref}
    assert refs
    history = folder / "history.json"
    history.write_text(json.dumps({"model": "gpt-4.1", "messages": messages}))
    return store, history, refs


def test_every_edit_of_the_session_is_listed_with_its_ref(played):
    ledger, history, refs = played
    ran = ullage("inspect", ledger, history, "--window", WINDOW)
    assert ran.status == 0
    assert all(ref in ran.text for ref in refs)
    assert "instead of" in ran.text


def test_on_a_narrow_terminal_no_ref_is_cut(played):
    ledger, history, refs = played
    ran = ullage(
        "inspect", ledger, history, "--window", WINDOW, env={"COLUMNS": "60"}
    )
    assert all(ref in ran.text for ref in refs)
    assert max(map(len, ran.text.splitlines())) <= 60


def test_as_json_it_is_the_trace_and_the_bills(played):
    ledger, history, refs = played
    ran = ullage("inspect", ledger, history, "--window", WINDOW, "--json")
    assert {mark["ref"] for mark in ran.json["trace"]["marks"]} == refs
    assert ran.json["bills"][0]["profile"] == "own"
    assert ran.json["policy"].startswith("default")


def test_the_model_is_the_ledgers_where_the_history_names_none(tmp_path):
    messages = trajectory("one", 4)["messages"]
    usage = {
        "prompt_tokens": 3_000,
        "completion_tokens": 20,
        "total_tokens": 3_020,
    }
    with Session("gpt-5.4", store=tmp_path / "own.db", recall=True) as session:
        view = session.fit({"model": "gpt-5.4", "messages": messages[:-1]})
        view.observe({"choices": [], "usage": usage})
    history = tmp_path / "history.json"
    history.write_text(json.dumps({"messages": messages}))
    ran = ullage("inspect", tmp_path / "own.db", history, "--json")
    assert ran.status == 0
    assert ran.json["bills"][0]["models"] == ["gpt-5.4"]


def test_the_page_is_its_owners_alone(played, tmp_path):
    ledger, history, _ = played
    page = tmp_path / "session.html"
    assert (
        ullage(
            "inspect", ledger, history, "--window", WINDOW, "--html", page
        ).status
        == 0
    )
    assert page.stat().st_mode & 0o077 == 0
    assert "A session's context window" in page.read_text()
    typed = f"ullage inspect {ledger.name} {history.name} --window {WINDOW}"
    assert typed in page.read_text(), "of paths their names alone"
    assert str(ledger.parent) not in page.read_text()


def test_a_page_for_others_says_what_is_left_out(played, tmp_path):
    ledger, history, _ = played
    page = tmp_path / "shared.html"
    asked = ("--window", WINDOW, "--html", page, "--share")
    assert ullage("inspect", ledger, history, *asked).status == 0
    assert "Keys, addresses and home folders" in page.read_text()


def test_the_picture_is_of_what_was_sent(played, tmp_path):
    ledger, history, _ = played
    plot = tmp_path / "session.svg"
    assert (
        ullage(
            "inspect", ledger, history, "--window", WINDOW, "--plot", plot
        ).status
        == 0
    )
    assert "A session under default" in plot.read_text()


def test_the_store_is_left_as_it_was(played):
    ledger, history, _ = played
    before = ledger.read_bytes()
    ullage("inspect", ledger, history, "--window", WINDOW // 2)
    assert ledger.read_bytes() == before


def test_another_history_is_told_in_one_line(played, tmp_path):
    ledger, _, _ = played
    other = tmp_path / "other.json"
    other.write_text(
        json.dumps(
            {"messages": [{"role": "user", "content": "else"}], "model": "m"}
        )
    )
    ran = ullage("inspect", ledger, other)
    assert ran.status == 1
    assert "no session with this history" in told(ran)


def test_a_run_that_is_not_there_is_told_in_one_line(played):
    ledger, history, _ = played
    ran = ullage("inspect", ledger, history, "--run", "none")
    assert ran.status == 1
    assert "there is no run" in told(ran)
