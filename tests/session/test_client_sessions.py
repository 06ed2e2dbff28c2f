"""Of which conversation a user speaks who names none, and what is told apart by client sessions.

Claude Code sends its session's id with every request, also with those of its sub-agents, which
have a header of their own. Its `/compact` begins a new history in the same session.
"""

import pytest

from tests.session.test_deciding import fit, new_session
from ullage import SqliteStore, Usage
from ullage.session.decisions.entries import newest_of
from ullage.session.stored.conversation import (
    conversation,
    conversations,
    under_way,
)
from ullage.tools.hand.described import told_of_left

MINE, OTHER = "0d9b7a3e-52f1-4a0c", "77f1c2d4-aaaa-4b0b"
SUMMED_UP = (
    "This session is being continued from a previous conversation that ran out of context. "
    "Summary: the loader was mended."
)


class Client:
    """A client that asks in sessions it names."""

    def __init__(self, store):
        self.store = store

    def asks(self, *texts, session=MINE, subagent=""):
        """A history of texts, the user's and the model's in turn, is fitted and answered."""
        own = new_session("anthropic", store=self.store)
        own.asked_in(session, subagent)
        messages = [
            {"role": ("user", "assistant")[n % 2], "content": text}
            for n, text in enumerate(texts)
        ]
        for length in range(1, len(messages) + 1, 2):
            view = fit(own, "anthropic", messages[:length])
            tokens = own._newest.tokens
            view.observe(Usage(fresh_tokens=tokens, output_tokens=1))

    def titles(self):
        listed = conversations(self.store, "")
        return sorted(entry.outline.title for entry in listed)

    def means(self, name=None):
        """How the conversation begins that is meant, and how long it is."""
        outline = conversation(self.store, "", name).outline
        return outline.title.split()[0], outline.length


@pytest.fixture
def client(tmp_path):
    store = SqliteStore(tmp_path / "store.db")
    yield Client(store)
    store.close()


LONG = (
    "Fix the loader.",
    "I look at all that it reads. " * 40,
    "Go on.",
    "I look.",
    "Go on.",
)
TALK = "I look at what nobody asked for. " * 200


def test_what_a_client_compacted_gives_way_to_what_it_went_on_with(client):
    client.asks(*LONG)
    client.asks(SUMMED_UP)
    assert client.means() == ("This", 1)
    assert client.means(MINE) == ("This", 1)
    listed = conversations(client.store, "")
    (entry,) = under_way(listed)
    assert entry.outline.is_compacted


def test_who_looks_at_what_a_client_left_is_told_what_it_went_on_with(client):
    client.asks(*LONG)
    old = conversation(client.store, "").outline.name
    assert told_of_left(conversation(client.store, "", old)) == ""
    client.asks(SUMMED_UP)
    new = conversation(client.store, "")
    told = told_of_left(conversation(client.store, "", old))
    assert f"went on with {new.outline.name}." in told
    assert told_of_left(new) == ""


def test_a_reminder_may_stand_before_the_summary(client):
    client.asks(*LONG)
    reminder = "<system-reminder>\nToday is Friday.\n</system-reminder>"
    parts = [{"type": "text", "text": text} for text in (reminder, SUMMED_UP)]
    client.asks(parts, "I look.", "Go on.")
    assert conversation(client.store, "").outline.is_compacted
    assert conversation(client.store, "").outline.length == 3


def test_what_is_compacted_twice_gives_way_twice(client):
    client.asks(*LONG)
    client.asks(SUMMED_UP, "I look.", "Go on.")
    client.asks(f"{SUMMED_UP} Then it was tested.")
    assert client.means() == ("This", 1)


def test_titles_and_subagents_are_beside_the_conversation(client):
    client.asks("Give it a title.")
    client.asks(*LONG)
    client.asks("Look at the tests.", TALK, "Go on.", subagent="a1b2c3d4e5")
    for name in (None, MINE, MINE[:8]):
        assert client.means(name) == ("Fix", 5)


def test_a_subagent_that_was_compacted_is_not_gone_on_with(client):
    client.asks(*LONG)
    client.asks(SUMMED_UP, subagent="a1b2c3d4e5")
    assert client.means() == ("Fix", 5)


def test_another_session_s_summary_is_another_conversation(client):
    client.asks(*LONG)
    client.asks(SUMMED_UP, session=OTHER)
    assert client.means() == ("Fix", 5)
    assert client.means(OTHER) == ("This", 1)


def test_what_begins_alike_in_two_sessions_is_two_conversations(client):
    client.asks("Fix it.", "I read a.", "Go on.")
    client.asks(
        "Fix it.", "I read b.", "Go on.", "I see.", "Go on.", session=OTHER
    )
    first, second = conversations(client.store, "")
    assert first.outline.name != second.outline.name
    assert client.means(MINE) == ("Fix", 3)
    assert client.means(OTHER) == ("Fix", 5)
    for entry in (first, second):
        name = entry.outline.name
        assert conversation(client.store, "", name).outline == entry.outline


def test_a_resumed_session_has_all_that_was_said(client):
    client.asks("Fix it.", "I read a.", "Go on.")
    client.asks(
        "Fix it.", "I read a.", "Go on.", "Done.", "And now?", session=OTHER
    )
    assert len(conversation(client.store, "", OTHER).messages) == 5
    assert len(conversation(client.store, "", MINE).messages) == 3


def test_what_was_begun_before_sessions_were_named_is_listed_once(client):
    client.asks("Fix it.", "I read a.", "Go on.", session="")
    before = conversation(client.store, "").outline.name
    client.asks("Fix it.", "I read a.", "Go on.", "Done.", "And now?")
    (entry,) = conversations(client.store, "")
    assert entry.outline.length == 5
    assert conversation(client.store, "", before).outline == entry.outline


def test_where_nothing_is_kept_nothing_is_meant():
    assert newest_of([]) is None
