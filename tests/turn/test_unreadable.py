"""Records that cannot be read, such as a newer version's, stop nobody and are never replaced."""

import pytest

from tests.sessions import SMALL, long_history, request
from ullage import MemoryStore, Record, Session


def session_on(store):
    return Session(
        "gpt-4.1", format="openai-chat", limits=SMALL, recall=True, store=store
    )


@pytest.mark.parametrize("kind", ["batch", "opened"])
def test_a_place_that_holds_what_cannot_be_read_is_passed(kind):
    asked = request("openai-chat", long_history("openai-chat"))
    first = session_on(None)
    view = first.fit(asked)
    keys = [
        key
        for key, entry in first.state.ledger.entries.items()
        if entry.batches
    ]
    keys += [
        key
        for key, entry in first.state.ledger.entries.items()
        if entry.policies
    ]
    store = MemoryStore()
    strange = tuple(
        Record(key, kind, 0, b"AAAA") for key in dict.fromkeys(keys)
    )
    store.commit("", (), strange)
    assert session_on(store).fit(asked) == view
    kept = {record.place: record.data for record in store.find("", keys)}
    assert all(kept[record.place] == b"AAAA" for record in strange)
