"""Of two who decide about the same text the user counts, whatever the order."""

import pytest

from tests.session.test_current import now
from tests.session.test_deciding import pressed
from ullage import ConfigError
from ullage.session.stored.conversation import decision_of
from ullage.tools.hand.authority import MODEL, check_rank


def check(session, verb, target, author=MODEL):
    stored = now(session)
    check_rank(stored, decision_of(stored, verb, target, author=author))


@pytest.fixture
def session():
    made, _, _ = pressed("anthropic")
    return made


def test_a_user_may_do_anything(session):
    session.pin("m3", author="ann")
    for author in ("", "ann", "user"):
        check(session, "drop", "m3", author)
        check(session, "drop", "m1", author)
        check(session, "undo", None, author)


@pytest.mark.parametrize(
    ("verb", "against"),
    [
        ("pin", "drop"),
        ("restore", "drop"),
        ("drop", "pin"),
        ("drop", "restore"),
    ],
)
def test_a_model_may_not_undo_what_a_user_did(session, verb, against):
    check(session, verb, "m5")
    getattr(session, against)("m5", author="ann")
    with pytest.raises(ConfigError, match="otherwise"):
        check(session, verb, "m5")
    with pytest.raises(ConfigError, match="otherwise"):
        check(session, verb, "m5.1")
    check(session, verb, "m7")
    session.undo()
    check(session, verb, "m5")


def test_the_user_s_latest_word_counts(session):
    session.drop("m5")
    session.pin("m5")
    check(session, "restore", "m5")
    with pytest.raises(ConfigError, match="otherwise"):
        check(session, "drop", "m5")


def test_what_it_decided_itself_it_may_take_back(session):
    name = session.drop("m5", author=MODEL)
    check(session, "pin", "m5")
    check(session, "undo", name)
    users = session.undo(name)
    with pytest.raises(ConfigError, match="otherwise"):
        check(session, "undo", users)


def test_the_words_of_the_user_are_not_its_to_drop(session):
    with pytest.raises(ConfigError, match="own words"):
        check(session, "drop", "m1")
    check(session, "pin", "m1")
