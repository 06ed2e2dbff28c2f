"""Erasure, proven by the bytes of the files: a tenant from a store, a conversation from a chat."""

import random

import pytest

from tests import histories
from tests.cli.terminal import told, ullage
from tests.histories import Call, Turn
from ullage import Limits, MemoryStore, Session
from ullage.core.values.usage import Usage
from ullage.documents.conversation import ConversationStore
from ullage.stores import SpillStore, SqliteStore, every_ref, forget

MARKS = {
    who: random.Random(who).randbytes(30).hex() for who in ("anna", "bert")
}
"""What only one of them ever saw; it does not compress."""


def turns(who):
    lines = [
        f"{MARKS[who]} {n} " + random.Random(n).randbytes(40).hex()
        for n in range(60)
    ]
    return [
        Turn(user=MARKS[who], calls=(Call("bash", who, "\n".join(lines)),))
        for _ in range(12)
    ]


def lives(store, who):
    limits = Limits(window_tokens=12_000, output_reserve_tokens=1_000)
    session = Session(
        "gpt-4.1", limits=limits, store=store, tenant=who, recall=True
    )
    session.fit(
        histories.request(
            "openai-chat", histories.wire("openai-chat", turns(who))
        )
    )
    assert session.store.refs(who)


def files(folder):
    return {
        file.name: file.read_bytes()
        for file in sorted(folder.rglob("*"))
        if file.is_file()
    }


def holding(folder, *texts):
    """The files in which a text stands as it is; names count too."""
    wanted = [text.encode() for text in texts]
    return [
        name
        for name, raw in files(folder).items()
        if any(t in raw + name.encode() for t in wanted)
    ]


@pytest.fixture
def kept(tmp_path):
    store = SpillStore(SqliteStore(tmp_path / "kept.db"), tmp_path / "spill")
    for who in MARKS:
        lives(store, who)
    before = {ref: store.get("bert", ref) for ref in every_ref(store, "bert")}
    store.close()
    return tmp_path, before


def test_a_tenant_is_gone_from_every_file_and_the_others_keep_all_they_have(
    kept,
):
    folder, before = kept
    assert holding(folder, MARKS["anna"], "anna")
    ran = ullage(
        "forget",
        folder / "kept.db",
        "--tenant",
        "anna",
        "--spill",
        folder / "spill",
    )
    assert ran.status == 0
    assert "outputs and " in ran.text
    assert holding(folder, MARKS["anna"], "anna") == []
    assert holding(folder, MARKS["bert"])
    store = SqliteStore(folder / "kept.db")
    assert store.refs("anna") == ()
    assert {
        ref: store.get("bert", ref) for ref in every_ref(store, "bert")
    } == before
    store.close()


def test_once_more_there_is_nothing(kept):
    folder, _ = kept
    path = folder / "kept.db"
    for wanted in (False, True):
        named = ("--store", path) if wanted else (path,)
        ran = ullage("forget", *named, "--tenant", "anna", "--json")
        assert (ran.json == {"outputs": 0, "records": 0}) is wanted


def test_whatever_a_clock_said_all_of_it_goes():
    """What was written by a clock that was ahead, and is needed by a live ledger, goes too."""
    now_s = [10**10]
    store = MemoryStore(clock=lambda: now_s[0])
    lives(store, "anna")
    now_s[0] = 10**9
    done = forget(store, "anna")
    assert done.removed
    assert done.records
    assert store.refs("anna") == ()
    assert (
        store.find("anna", [record.key for record in session_records(store)])
        == ()
    )


def session_records(store):
    own = store._tenants.get("anna")
    return (
        []
        if own is None
        else [one for under in own.records.values() for one in under.values()]
    )


@pytest.mark.parametrize("mode", ["DELETE", "WAL"])
def test_a_conversation_is_gone_and_its_neighbour_stays(tmp_path, mode):
    path = tmp_path / "chat.db"
    chats = ConversationStore(path)
    with chats._connected("test") as db:
        db.execute(f"PRAGMA journal_mode = {mode}")
    for who in MARKS:
        ids = chats.append(who, histories.wire("openai-chat", turns(who)))
        chats.mark_compacted(ids[10], f"Of {MARKS[who]}.", tokens=10)
    neighbour = chats.history("bert")
    ran = ullage("forget", path, "--conversation", "anna")
    assert ran.text == "37 messages are erased\n"
    assert holding(tmp_path, MARKS["anna"], "anna") == []
    assert chats.history("bert") == neighbour
    assert chats.history("anna") == ()


def test_what_cannot_be_meant_is_refused_and_changes_nothing(kept):
    folder, _ = kept
    before = files(folder)
    path = folder / "kept.db"
    assert "one of them" in told(ullage("forget", path))
    assert "name the store" in told(ullage("forget", "--tenant", "anna"))
    assert "one of them" in told(
        ullage("forget", path, "--tenant", "a", "--conversation", "b")
    )
    assert "no conversations" in told(
        ullage("forget", path, "--conversation", "anna")
    )
    assert files(folder)["kept.db"] == before["kept.db"]


def test_a_tenant_that_the_store_does_not_have_is_an_error(tmp_path):
    with Session("gpt-4.1", store=tmp_path / "kept.db", tenant="anna") as own:
        own.fit({"messages": [{"role": "user", "content": "Go."}]})
        own.observe(Usage(fresh_tokens=3))
    ran = ullage("forget", tmp_path / "kept.db", "--tenant", "ana")
    assert ran.status == 1
    words = (
        "the store keeps nothing of a tenant 'ana'. It has receipts of: anna."
    )
    assert words in told(ran)
    first, again = (
        ullage("forget", tmp_path / "kept.db", "--tenant", "anna")
        for _ in range(2)
    )
    assert (first.status, again.status) == (0, 0)
    assert "are erased" in first.text
    assert "nothing of this tenant is kept any more" in again.text
