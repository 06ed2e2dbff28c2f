"""What is kept of a message thread, by the id of its newest reply."""

from ullage import MemoryStore
from ullage.core.turn.threads import Thread, record_of, thread_of
from ullage.core.values.effects import Record
from ullage.session.drivers import run

KEPT = Thread(True, "ullage_", ("get_continuation",), 900)


def kept(*records):
    store = MemoryStore()
    store.commit("t", (), records)
    return store


def test_it_is_found_by_its_reply_its_tenant_and_its_wire():
    store = kept(record_of("anthropic", "t", "msg_1", KEPT))
    assert run(thread_of("anthropic", "t", "msg_1"), store, "t") == KEPT
    for other in (
        ("anthropic", "t", "msg_2"),
        ("anthropic", "s", "msg_1"),
        ("openai-chat", "t", "msg_1"),
    ):
        assert run(thread_of(*other), store, "t") is None


def test_what_was_written_first_stands():
    """A stream is observed as far as it came, and then whole."""
    later = Thread(False, "", (), 0)
    store = kept(record_of("anthropic", "t", "msg_1", KEPT))
    store.commit("t", (), (record_of("anthropic", "t", "msg_1", later),))
    assert run(thread_of("anthropic", "t", "msg_1"), store, "t") == KEPT


def test_a_record_of_a_newer_version_is_passed_over():
    record = record_of("anthropic", "t", "msg_1", KEPT)
    newer = Record(record.key, record.kind, record.n, b"\xc1")
    assert run(thread_of("anthropic", "t", "msg_1"), kept(newer), "t") is None


def test_it_offers_what_it_was_created_with():
    assert KEPT.offers(["get_continuation"])
    assert not KEPT.offers(["tool_output_cache", "tool_output_cache_grep"])
    assert not Thread(False, "", ("get_continuation",)).offers(
        ["get_continuation"]
    )
