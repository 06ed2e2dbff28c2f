from hypothesis import given
from hypothesis import strategies as st

from ullage import Address, Batch, Record, Replace, ReplaceSpan
from ullage.core.history.ledger import (
    Entry,
    Ledger,
    PolicyRecord,
    UsageRecord,
    merge_records,
    records_since,
)
from ullage.core.values.decisions import Decision

keys = st.binary(min_size=16, max_size=16)
texts = st.text(st.sampled_from("ab é猫\x00\ud800"), max_size=12)
counts = st.integers(0, 10**9)
places = st.builds(
    Address,
    st.sampled_from(("result", "call", "text")),
    texts,
    st.integers(0, 9),
    st.integers(0, 9),
)
edits = st.one_of(
    st.builds(
        Replace,
        places,
        texts,
        texts,
        st.sampled_from(("truncated", "pruned", "cut")),
        texts,
    ),
    st.builds(ReplaceSpan, keys, keys, texts, texts, texts),
)
batches = st.builds(
    Batch, texts, texts, st.lists(edits, max_size=4).map(tuple), counts, counts
)
observed = st.builds(UsageRecord, counts, counts)
opened = st.builds(
    PolicyRecord, st.just("default-1"), st.booleans(), st.just("ullage_")
)
steps = st.lists(
    st.tuples(keys, st.one_of(batches, observed, opened)), max_size=8
)

KEY = bytes(range(16))
BATCH = Batch(
    "prune",
    "default-1",
    (Replace(Address("result", "a", 0), "r", "t", "cut", "w"),),
    9,
    4,
)


def written(steps):
    """A ledger written step by step, and the records that keep it."""
    ledger, records = Ledger(), []
    for key, value in steps:
        name = {
            Batch: "batch",
            UsageRecord: "observed",
            PolicyRecord: "policy",
        }[type(value)]
        ledger, record = getattr(ledger, f"with_{name}")(key, value)
        records.append(record)
    return ledger, records


def test_batches_add_up_and_the_other_kinds_are_replaced():
    ledger, records = written(
        [
            (KEY, BATCH),
            (KEY, UsageRecord(5, 4)),
            (KEY, BATCH),
            (KEY, UsageRecord(9, 8)),
        ]
    )
    assert [(record.kind, record.n) for record in records] == [
        *(("batch", 0), ("observed", 0), ("batch", 1), ("observed", 0))
    ]
    assert ledger.at(KEY) == Entry((BATCH, BATCH), {"": UsageRecord(9, 8)})
    assert KEY in ledger
    assert ledger.at(b"elsewhere") == Entry()


def test_a_batch_kept_by_another_wins_over_ours_and_over_what_followed():
    ours, _ = written([(KEY, BATCH), (KEY, BATCH)])
    theirs = Batch("emergency", "default-1", (), 9, 3)
    _, records = written([(KEY, theirs)])
    assert ours.with_records(records).at(KEY).batches == (theirs,)


def test_a_record_that_cannot_be_read_here_is_passed_over():
    odd = (
        Record(KEY, "batch", 0, b"\xc1"),
        Record(KEY, "of a later version", 0, b"?"),
    )
    assert Ledger().with_records(odd).at(KEY) == Entry()


def test_a_batch_behind_one_that_cannot_be_read_keeps_its_number():
    """Names and undos of batches are by number, so every version has to count alike."""
    newer = Record(KEY, "batch", 0, b"\xc1")
    _, records = written([(KEY, BATCH), (KEY, BATCH)])
    stored = (newer, records[1])
    ledger = Ledger().with_records(stored)
    assert ledger.at(KEY).batches[1] == BATCH
    assert ledger.merged(stored) == (ledger, frozenset())
    _, following = ledger.with_batch(KEY, BATCH)
    assert following.n == 2
    assert records_since(ledger, Ledger()) == (records[1],)
    merged, waiting = merge_records(ledger, (following,))
    assert merged.at(KEY).batches[1:] == (BATCH, BATCH)
    assert waiting == ()
    far = Record(KEY, "batch", 10**12, records[1].data)
    assert Ledger().with_records((newer, far)).at(KEY) == Entry()


def test_what_went_along_goes_with_the_records_of_a_host():
    note = Decision(verb="note", text="Be kind.", origin="c7k2m9xqa")
    ledger, decided = Ledger().with_decision(KEY, note)
    ledger, follows = ledger.with_follows(KEY, "c7k2m9xqa", (decided,))
    records = records_since(ledger, Ledger())
    assert set(records) == {decided, follows}
    merged, waiting = merge_records(Ledger(), records)
    assert (merged, waiting) == (ledger, ())
    _, others = Ledger().with_follows(KEY, "c7k2m9xqa", ())
    assert others.place == follows.place
    assert others.data != follows.data


def test_each_model_has_an_observation_of_its_own():
    mine, theirs = (
        UsageRecord(5, 4, 0, "gpt-4.1"),
        UsageRecord(9, 8, 0, "gpt-4"),
    )
    ledger, records = written([(KEY, mine), (KEY, theirs)])
    assert ledger.at(KEY).observed == {"gpt-4.1": mine, "gpt-4": theirs}
    assert Ledger().with_records(records) == ledger


def test_a_lone_surrogate_in_a_batch_is_kept():
    cut = Replace(Address("result", "a", 0), "r", "\ud800", "cut", "w")
    odd = Batch("prune", "default-1", (cut,), 9, 4)
    _, records = written([(KEY, odd)])
    assert Ledger().with_records(records).at(KEY).batches == (odd,)


@given(steps)
def test_its_records_are_the_whole_of_it(steps):
    ledger, records = written(steps)
    assert Ledger().with_records(records) == ledger
    assert ledger.with_records(records) == ledger


@given(steps)
def test_a_step_changes_no_earlier_ledger(steps):
    before, _ = written(steps)
    copy = Ledger(dict(before.entries))
    after, _ = before.with_batch(KEY, BATCH)
    assert before == copy
    assert after.at(KEY).batches[-1] == BATCH


def test_however_much_is_in_it_a_step_copies_what_came_last_and_the_rest_stays_in_place():
    steps = [
        (number.to_bytes(16, "big"), UsageRecord(number, 1))
        for number in range(1_000)
    ]
    ledger, records = written([*steps, (steps[3][0], BATCH)])
    assert ledger == Ledger().with_records(records)
    assert set(ledger.entries) == {key for key, _ in steps}
    for key, observed in steps:
        assert key in ledger
        assert ledger.at(key).observed == {"": observed}
    assert ledger.at(steps[3][0]).batches == (BATCH,)
    after = ledger.with_observed(KEY, UsageRecord(5, 4))[0]
    assert after._older is ledger._older
    assert KEY not in ledger


def test_the_stored_form_is_pinned():
    """A stored form is read for ever: old bytes must go on meaning what they meant."""
    old = bytes.fromhex(
        "85a57374616765a57072756e65a6706f6c696379a964656661756c742d31a565646974739186a474"
        "797065a77265706c616365a5706c61636594a6726573756c74a1610000a3726566a172a474657874"
        "a174a46b696e64a3637574a3776879a177ad746f6b656e735f6265666f726509ac746f6b656e735f"
        "616674657204"
    )
    assert Ledger().with_records([Record(KEY, "batch", 0, old)]).at(
        KEY
    ).batches == (BATCH,)
    seen = Record(KEY, "observed", 0, bytes.fromhex("92cd03e8cd0384"))
    began = Record(
        KEY, "opened", 0, bytes.fromhex("93a964656661756c742d31c3a0")
    )
    entry = Ledger().with_records([seen, began]).at(KEY)
    assert entry == Entry(
        (),
        {"": UsageRecord(1_000, 900)},
        (PolicyRecord("default-1", recall=True),),
    )
