"""Stored replies as values: what is private is left out, and all else is the very same object."""

import pytest

from tests.hidden_turns.talk import OWN, RECALL, Reply, Talk
from ullage.doors.hidden_turns.stored import (
    rounds_of,
    stored_items,
    stored_replies,
    stored_reply,
)
from ullage.session.drivers import run
from ullage.wires import FORMATS

each = pytest.mark.parametrize("format", ["openai-responses", "openai-chat"])


def begun(format, said):
    talk = Talk(format)
    talk.fields = {"store": True}
    talk.user(said)
    return talk


def asked(talk, steps):
    return run(steps, talk.store, "t")


def looked(format):
    """A conversation in which the model looked twice before it answered."""
    talk = begun(format, "What failed?")
    talk.model(
        Reply("First.", [RECALL]), Reply("", [RECALL]), Reply("Line 5.")
    )
    return talk


@each
def test_the_reply_under_the_clients_id_is_what_the_client_got(format):
    talk = looked(format)
    first = {"id": talk.reply["id"]}
    assert asked(talk, stored_reply(first, talk.wire, "t")) == talk.reply
    assert len(asked(talk, rounds_of(talk.reply["id"], talk.wire, "t"))) == 2


@each
def test_a_reply_of_nobody_we_know_stays_the_same_object(format):
    talk = looked(format)
    other = {"id": "another", "output": [], "choices": []}
    assert asked(talk, stored_reply(other, talk.wire, "t")) is other
    assert asked(talk, rounds_of("another", talk.wire, "t")) == ()
    assert (
        asked(talk, stored_reply({"id": talk.reply["id"]}, talk.wire, "other"))
        != talk.reply
    )


@each
def test_items_without_a_private_call_stay_the_same_object(format):
    talk = begun(format, "Read it.")
    talk.model(Reply("", [OWN]))
    page = {"data": list(talk.history)}
    assert asked(talk, stored_items(page, talk.wire, "t")) is page


@pytest.mark.parametrize(
    "page", [{}, {"data": None}, {"data": ["text", 5, None]}]
)
@each
def test_pages_that_are_none_pass(format, page):
    talk = looked(format)
    wire = FORMATS[format]
    assert asked(talk, stored_items(page, wire, "t")) == page
    assert asked(talk, stored_replies({}, wire, "t")) == {}
