"""Whose decision counts: a user's own outranks a model's.

A model may decide where its user lets it (``ullage mcp serve --decides model``). What the user
decided is not the model's to undo: it may not drop what the user pinned, bring back what the user
dropped, or take a decision of the user's back. Nor may it drop what the user said: a page that it
reads could have asked for that.
"""

from __future__ import annotations

from collections.abc import Iterator

from ullage.core.errors import ConfigError
from ullage.core.history.hand import entered_in, locations_of
from ullage.core.history.transcript import Location
from ullage.core.values.decisions import Decision, LedgerRef, Verb
from ullage.session.stored.conversation import StoredConversation

MODEL = "model"
"""The author of what a model decides by itself."""
_AGAINST: dict[Verb, tuple[Verb, ...]] = {
    "drop": ("pin", "restore"),
    "pin": ("drop",),
    "restore": ("drop",),
}
"""The decisions about the same text that one is against."""


def check_rank(stored: StoredConversation, decision: Decision) -> None:
    """Refuse a decision of a model's that is against one of the user's.

    Args:
        stored: the conversation, with what stands in it.
        decision: what is to be decided, and by whom.

    Raises:
        ConfigError: a user decided otherwise, or said what is to be dropped.
    """
    if decision.author != MODEL:
        return
    if decision.verb == "drop" and _is_users_own(stored, decision):
        raise ConfigError(
            "drop", "these are the user's own words", "Ask the user."
        )
    if decision.undoes is not None:
        name = _user_decision(stored, decision.undoes)
    else:
        name = next(_against(stored, decision), "")
    if name:
        raise ConfigError(
            decision.verb,
            f"the user decided otherwise ({name}), and that counts",
            "Ask the user.",
        )


def _is_users_own(stored: StoredConversation, decision: Decision) -> bool:
    """Whether a decision is about anything that the user said."""
    words = stored.transcript.user_words
    return any(
        words(index, number)
        for index, number, _ in _locations(stored, decision)
    )


def _user_decision(stored: StoredConversation, undoes: LedgerRef) -> str:
    """The name of the user's decision that an undo is to take back; ``""``: it is none."""
    for entry in entered_in(stored.transcript, stored.ledger):
        if entry.ref == undoes and entry.decision.author != MODEL:
            return entry.name
    return ""


def _against(stored: StoredConversation, decision: Decision) -> Iterator[str]:
    """The names of the user's decisions that a decision about a text is against."""
    against = _AGAINST.get(decision.verb, ())
    meant = _locations(stored, decision)
    for entry in reversed(stored.hand.decisions):
        is_users = entry.decision.author != MODEL
        if is_users and meant & _locations(stored, entry.decision):
            if entry.decision.verb in against:
                yield entry.name
            meant -= _locations(stored, entry.decision)


def _locations(
    stored: StoredConversation, decision: Decision
) -> set[Location]:
    if decision.target is None:
        return set()
    return set(locations_of(stored.transcript, decision.target))
