"""A window as data: the whole of it for programs; for the page names, and no text of it."""

import json

import pytest

from tests.session.test_current import now
from tests.session.test_deciding import fit, gone, pressed
from ullage.tools.hand.described import as_page, as_window


@pytest.fixture(scope="module")
def decided():
    session, messages, _ = pressed("anthropic")
    session.pin(gone(session)[0], reason="the rules", author="ann")
    session.drop(f"m{len(messages)}")
    fit(session, "anthropic", messages)
    session.note("Never touch main.")
    return session


def test_the_whole_window_is_told_with_its_texts_batches_and_decisions(
    decided,
):
    stored = now(decided)
    window = as_window(stored)
    assert [text["name"] for text in window["texts"]] == [
        leaf.name for leaf in stored.leaves()
    ]
    made = [(one["what"], one["author"]) for one in window["decisions"]]
    assert [what.split(",")[0] for what, _ in made] == [
        "pin message 3",
        "drop message 25",
        "note",
    ]
    assert made[0][1] == "ann"
    names = {batch["name"] for batch in window["batches"]}
    by = {text["batch"] for text in window["texts"]} - {""}
    assert by <= names


def test_the_page_is_told_no_text_but_the_user_s_own(decided):
    page = as_page(now(decided), decided.events)
    assert "line 1 of it" not in json.dumps(page)
    pin, drop, note = page["decisions"]
    assert (pin["target"], drop["target"], note["target"]) == (
        "pin m3",
        "drop m25",
        "",
    )
    assert note["text"] == "Never touch main."
    assert "again, about $" in pin["price"]
    assert note["price"] == "", "it is carried out with the next request"
    assert not note["carried_out"]
    pinned = [text[1] for text in page["texts"] if text[6]]
    assert pinned == ["m3.1"]


def test_batches_that_carry_out_decisions_are_not_the_policy_s(decided):
    names = {batch["name"] for batch in as_page(now(decided))["batches"]}
    assert names
    for batch in as_window(now(decided))["batches"]:
        is_policy_s = not batch["decision"] and batch["edits"]
        assert (batch["name"] in names) == bool(is_policy_s)
