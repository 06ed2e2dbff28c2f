"""The proof of a store: inherit from `Contract` and say how one is opened."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ullage.errors import RefNotFound, StoreError
from ullage.history.canon import ref_of
from ullage.history.ledger import Ledger
from ullage.stores import Bounds, Store
from ullage.stores._chunks import CHUNK_CHARS
from ullage.stores._clean import DAY_S
from ullage.values.edits import Address, Batch, Replace, Summary
from ullage.values.effects import Output, Record

ODD = (
    "",
    "plain",
    "naïve 😀\u0301",
    "\ud83d",
    "\ude00\ud83d",
    "a\x00b",
    "\r\n\u2028\x85",
    "x" * 70_000,
)

# Chunk edges fall within a CR LF, a joined emoji and a pair of surrogates.
HUGE = "".join(("x\n" * CHUNK_CHARS)[: CHUNK_CHARS - 2] + edge for edge in ("ab", "a\r", "\n👩"))
HUGE += ("\u200d👧" + "é" * CHUNK_CHARS)[: CHUNK_CHARS - 1] + "\ud83d\ude00"


def output(text: str, kind: str = "text") -> Output:
    return Output(ref_of(text, kind), text, kind)


def batch(key: bytes, n: int, data: bytes) -> Record:
    return Record(key, "batch", n, data)


class Model:
    """What a store should do, as two dictionaries and no thought of speed."""

    def __init__(self) -> None:
        self.outputs: dict[tuple[str, str], Output] = {}
        self.records: dict[tuple[str, bytes, str, int], bytes] = {}

    def commit(self, tenant, outputs, records):
        for out in outputs:
            self.outputs.setdefault((tenant, out.ref), out)
        standing = [
            Record(r.key, r.kind, r.n, self.records[tenant, r.key, r.kind, r.n])
            for r in records
            if r.kind == "batch"
            and self.records.get((tenant, r.key, r.kind, r.n), r.data) != r.data
        ]
        if not standing:
            self.records |= {(tenant, r.key, r.kind, r.n): r.data for r in records}
        return tuple(standing)

    def find(self, tenant, keys):
        return tuple(
            Record(key, kind, n, data)
            for wanted in dict.fromkeys(keys)
            for (who, key, kind, n), data in sorted(self.records.items())
            if who == tenant and key == wanted
        )

    def refs(self, tenant):
        return tuple(ref for who, ref in self.outputs if who == tenant)


tenants = st.sampled_from(["", "a", "ab", "a\x00b", "\ud800", "é"])
keys = st.sampled_from([b"", b"\x00" * 16, b"\xff" * 16, b"k"])
texts = st.one_of(st.sampled_from(ODD), st.text(st.characters(), max_size=30))
outputs = st.builds(output, texts, st.sampled_from(["text", "block"]))
batches = st.builds(batch, keys, st.integers(0, 2), st.sampled_from([b"", b"1", b"2"]))
others = st.builds(
    Record, keys, st.sampled_from(["observed", "opened"]), st.just(0), st.binary(max_size=3)
)
commits = st.tuples(
    tenants,
    st.lists(outputs, max_size=4),
    st.lists(st.one_of(batches, others), max_size=4, unique_by=lambda r: (r.key, r.kind, r.n)),
)


def decided(key: bytes, *edits, n: int = 0) -> Record:
    """The record of a real batch, as a session writes it."""
    data = Batch("prune", "default", edits, 100, 10)
    record = Ledger().with_batch(key, data)[1]
    return Record(key, "batch", n, record.data)


def replaced(ref: str) -> Replace:
    return Replace(Address("result", "call", 0), ref, "[cut]", "pruned", "why")


class Clock:
    """A time that passes when told."""

    def __init__(self) -> None:
        self.now_s = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now_s

    def days_pass(self, days: float) -> None:
        self.now_s += days * DAY_S


AGED = Bounds(older_than_s=30 * DAY_S)


class Contract:
    """Every promise of `ullage.stores.Store`.

    What `opened` opens must take its time from ``clock``.
    """

    clock = Clock()

    @contextmanager
    def opened(self) -> Iterator[Store]:
        raise NotImplementedError

    def test_any_sequence_of_commits_equals_two_dictionaries(self):
        @settings(max_examples=60, deadline=None)
        @given(st.lists(commits, max_size=8))
        def proof(sequence):
            with self.opened() as store:
                self.check_against_model(store, sequence)

        proof()

    def check_against_model(self, store, sequence):
        model = Model()
        for tenant, some, records in sequence:
            assert store.commit(tenant, some, records) == model.commit(tenant, some, records)
        for tenant in {tenant for tenant, _, _ in sequence} | {"never"}:
            wanted = [b"\xff" * 16, b"absent", b"", b"k", b"\x00" * 16, b"k"]
            assert store.find(tenant, iter(wanted)) == model.find(tenant, wanted)
            assert store.refs(tenant) == model.refs(tenant)
        for (tenant, ref), kept in model.outputs.items():
            assert store.get(tenant, ref) == kept

    @pytest.mark.parametrize("text", ODD)
    @pytest.mark.parametrize("kind", ["text", "block"])
    def test_every_text_comes_back_as_it_was(self, text, kind):
        with self.opened() as store:
            store.commit("t", [output(text, kind)], [])
            assert store.get("t", ref_of(text, kind)) == output(text, kind)

    @pytest.mark.parametrize("text", [*ODD, HUGE], ids=[*map(str, range(len(ODD))), "huge"])
    @pytest.mark.parametrize("kind", ["text", "block"])
    def test_its_chunks_join_to_the_text_and_are_what_the_shape_says(self, text, kind):
        out = output(text, kind)
        with self.opened() as store:
            store.commit("t", [out], [])
            shape = store.look("t", out.ref)
            chunks = [store.chunk("t", out.ref, n) for n in range(len(shape.chunks))]
            assert "".join(chunks) == text
            assert (shape.ref, shape.kind, shape.chars) == (out.ref, kind, len(text))
            at = 0
            for chunk, extent in zip(chunks, shape.chunks, strict=True):
                assert extent.chars == len(chunk)
                assert extent.size_bytes == len(chunk.encode("utf-8", "surrogatepass"))
                assert extent.newlines == chunk.count("\n")
                assert extent.crlf == ("\r\n" in text[at : at + len(chunk) + 1])
                at += len(chunk)
            for beyond in (-1, len(chunks)):
                with pytest.raises(RefNotFound):
                    store.chunk("t", out.ref, beyond)

    @pytest.mark.parametrize("ref", ["", "../../etc/passwd", "a\x00b", "\ud800", "x" * 300, "Ａ"])
    def test_an_unknown_ref_is_not_found_whatever_it_looks_like(self, ref):
        with self.opened() as store:
            store.commit("t", [output("kept")], [])
            for read in (store.get, store.look, lambda t, r: store.chunk(t, r, 0)):
                with pytest.raises(RefNotFound) as caught:
                    read("t", ref)
                assert caught.value.ref == ref

    def test_a_tenant_reads_only_what_it_put_itself(self):
        shared, own = output("both hold this"), output("only one holds this")
        with self.opened() as store:
            store.commit("one", [shared, own], [batch(b"k", 0, b"one")])
            store.commit("two", [shared], [batch(b"k", 0, b"two")])
            assert store.refs("two") == (shared.ref,)
            assert store.get("two", shared.ref).text == shared.text
            assert store.find("two", [b"k"]) == (batch(b"k", 0, b"two"),)
            with pytest.raises(RefNotFound):
                store.get("two", own.ref)
            with pytest.raises(RefNotFound):
                store.look("two", own.ref)
            with pytest.raises(RefNotFound):
                store.chunk("two", own.ref, 0)

    def test_a_lost_race_keeps_the_outputs_and_none_of_the_records(self):
        with self.opened() as store:
            store.commit("t", [], [batch(b"k", 0, b"first")])
            late = output("found by the loser")
            records = [
                batch(b"k", 1, b"x"),
                Record(b"k", "observed", 0, b"y"),
                batch(b"k", 0, b"2"),
            ]
            assert store.commit("t", [late], records) == (batch(b"k", 0, b"first"),)
            assert store.find("t", [b"k"]) == (batch(b"k", 0, b"first"),)
            assert store.get("t", late.ref) == late

    def test_the_same_batch_twice_is_no_race(self):
        with self.opened() as store:
            for n in (0, 1):
                assert store.commit("t", [], [batch(b"k", i, b"d") for i in range(n + 1)]) == ()
            assert store.find("t", [b"k"]) == (batch(b"k", 0, b"d"), batch(b"k", 1, b"d"))

    def test_a_ref_taken_by_other_content_keeps_nothing_of_the_commit(self):
        forged = Output(ref_of("original"), "forged")
        with self.opened() as store:
            store.commit("t", [output("original")], [])
            with pytest.raises(StoreError, match="taken by different content") as caught:
                store.commit("t", [output("innocent"), forged], [batch(b"k", 0, b"d")])
            assert caught.value.key == forged.ref
            assert "forged" not in str(caught.value)
            assert store.refs("t") == (ref_of("original"),)
            assert store.find("t", [b"k"]) == ()
            assert store.get("t", forged.ref).text == "original"

    def test_the_kind_is_part_of_the_content(self):
        with self.opened() as store:
            store.commit("t", [Output("r", "same", "text")], [])
            with pytest.raises(StoreError, match="taken"):
                store.commit("t", [Output("r", "same", "block")], [])

    def test_one_commit_that_contradicts_itself_keeps_nothing(self):
        with self.opened() as store:
            with pytest.raises(StoreError, match="two different batches"):
                store.commit("t", [output("x")], [batch(b"k", 0, b"1"), batch(b"k", 0, b"2")])
            with pytest.raises(StoreError, match="taken"):
                store.commit("t", [Output("r", "1"), Output("r", "2")], [])
            assert store.refs("t") == ()

    def test_other_records_hold_the_newest_value(self):
        with self.opened() as store:
            for data in (b"1", b"2", b"1"):
                store.commit("t", [], [Record(b"k", "opened", 0, data)])
            both = [Record(b"k", "observed", 0, b"a"), Record(b"k", "observed", 0, b"b")]
            store.commit("t", [], both)
            assert store.find("t", [b"k"]) == (both[1], Record(b"k", "opened", 0, b"1"))

    # Clean-up

    def test_without_bounds_nothing_goes(self):
        with self.opened() as store:
            store.commit("t", [output("x")], [batch(b"k", 0, b"d")])
            self.clock.days_pass(10_000)
            done = store.collect("t", Bounds())
            assert (done.removed, done.records) == ((), 0)
            assert store.refs("t") == (output("x").ref,)

    def test_what_was_not_used_for_long_goes_and_says_so(self):
        old, read, looked, again, new = map(output, "abcde")
        with self.opened() as store:
            store.commit("t", [old, read, looked, again], [batch(b"old", 0, b"d")])
            store.commit("t", [], [batch(b"found", 0, b"d"), batch(b"more", 0, b"d")])
            self.clock.days_pass(29)
            store.get("t", read.ref)
            store.look("t", looked.ref)
            store.commit("t", [again, new], [batch(b"more", 1, b"e")])
            store.find("t", [b"found"])
            self.clock.days_pass(2)
            done = store.collect("t", AGED)
            assert [gone.ref for gone in done.removed] == [old.ref]
            assert (done.removed[0].tenant, done.removed[0].needed) == ("t", False)
            assert done.records == 1
            assert store.refs("t") == (read.ref, looked.ref, again.ref, new.ref)
            assert done.held == set(store.refs("t"))
            assert [r.key for r in store.find("t", [b"old", b"found"])] == [b"found"]
            assert len(store.find("t", [b"more"])) == 2
            with pytest.raises(RefNotFound):
                store.get("t", old.ref)
            store.commit("t", [old], [])
            assert store.get("t", old.ref) == old

    def test_what_a_live_ledger_names_stays_until_the_ledger_goes(self):
        named, listed, free = output("named"), output("listed"), output("free")
        index = output(f"Index of messages\noutput ref={listed.ref} (6 characters)")
        span = Summary(b"a" * 16, b"b" * 16, "[condensed]", index.ref, "why")
        with self.opened() as store:
            records = [decided(b"k", replaced(named.ref)), decided(b"s", span)]
            store.commit("t", [named, listed, free, index], records)
            for _ in range(3):
                self.clock.days_pass(20)
                store.find("t", [b"k", b"s"])
            done = store.collect("t", AGED)
            assert [gone.ref for gone in done.removed] == [free.ref]
            assert store.refs("t") == (named.ref, listed.ref, index.ref)
            self.clock.days_pass(40)
            assert store.collect("t", AGED).records == 2
            assert store.refs("t") == ()

    def test_the_ledger_of_one_tenant_keeps_nothing_of_another(self):
        one = output("both hold it")
        with self.opened() as store:
            store.commit("a", [one], [decided(b"k", replaced(one.ref))])
            store.commit("b", [one], [])
            self.clock.days_pass(40)
            store.find("a", [b"k"])
            done = store.collect(None, AGED)
            assert [(gone.tenant, gone.ref) for gone in done.removed] == [("b", one.ref)]
            assert done.held == {one.ref}
            assert store.get("a", one.ref) == one

    def test_over_its_size_the_longest_unused_go_first_and_what_is_needed_last(self):
        texts = [f"{n} " + random.Random(n).randbytes(5_000).hex() for n in range(6)]
        first, *rest = map(output, texts)
        with self.opened() as store:
            store.commit("t", [first], [decided(b"k", replaced(first.ref))])
            for out in rest:
                self.clock.days_pass(2)
                store.commit("t", [out], [])
            self.clock.days_pass(2)
            store.get("t", rest[0].ref)
            size = store.collect("t", Bounds(), dry_run=True).left_bytes
            done = store.collect("t", Bounds(max_bytes=size // 2))
            assert [gone.ref for gone in done.removed] == [out.ref for out in rest[1:4]]
            assert done.left_bytes <= size // 2
            done = store.collect("t", Bounds(max_bytes=0), keep={rest[4].ref})
            assert [gone.ref for gone in done.removed] == [rest[0].ref]
            assert store.refs("t") == (first.ref, rest[4].ref)
            done = store.collect("t", Bounds(max_bytes=0, even_needed=True))
            assert [(g.ref, g.needed) for g in done.removed] == [
                (rest[4].ref, False),
                (first.ref, True),
            ]
            assert (done.left_bytes, store.refs("t")) == (0, ())

    def test_a_dry_run_says_the_same_and_does_nothing(self):
        with self.opened() as store:
            store.commit("t", [output("x")], [batch(b"k", 0, b"d")])
            self.clock.days_pass(40)
            told = store.collect("t", AGED, dry_run=True)
            assert store.refs("t") == (output("x").ref,)
            done = store.collect("t", AGED)
            assert (told.removed, told.records) == (done.removed, done.records) != ((), 0)

    def test_one_tenant_is_cleaned_and_the_others_are_not(self):
        with self.opened() as store:
            for tenant in ("", "a", "\ud800"):
                store.commit(tenant, [output("shared")], [batch(b"k", 0, b"d")])
            self.clock.days_pass(40)
            assert len(store.collect("a", AGED).removed) == 1
            assert store.collect("never", AGED).removed == ()
            assert [store.refs(t) != () for t in ("", "a", "\ud800")] == [True, False, True]
            assert {gone.tenant for gone in store.collect(None, AGED).removed} == {"", "\ud800"}

    def test_it_is_done_again_only_after_a_while_and_of_each_tenant(self):
        daily = Bounds(older_than_s=0, every_s=DAY_S)
        with self.opened() as store:
            assert store.collect("t", daily, dry_run=True) is not None
            assert store.collect("t", daily) is not None
            self.clock.days_pass(0.9)
            assert store.collect("t", daily) is None
            assert store.collect("u", daily) is not None
            assert store.collect(None, daily) is not None
            self.clock.days_pass(0.2)
            assert store.collect("t", daily) is not None

    def test_many_keys_come_back_in_the_order_asked(self):
        wanted = [n.to_bytes(16, "big") for n in range(2_500)]
        with self.opened() as store:
            store.commit("t", [], [batch(key, 0, key[-2:]) for key in wanted])
            wanted.sort(key=lambda key: key[-1:] + key)
            assert [record.key for record in store.find("t", wanted)] == wanted

    def test_threads_that_want_one_place_agree_on_a_winner(self):
        with self.opened() as store:
            lost: list[tuple[Record, ...]] = []

            def write(name: bytes) -> None:
                own = output(f"output {name!r}")
                lost.append(store.commit("t", [own], [batch(b"k", 0, name)]))
                assert store.get("t", own.ref) == own

            threads = [threading.Thread(target=write, args=(b"%d" % n,)) for n in range(8)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            winner = store.find("t", [b"k"])
            assert lost.count(()) == 1
            assert all(standing in ((), winner) for standing in lost)
            assert len(store.refs("t")) == 8

    def test_a_closed_store_refuses_everything(self):
        with self.opened() as store:
            store.close()
            store.close()
            for call in (
                lambda: store.commit("t", [], []),
                lambda: store.find("t", [b"k"]),
                lambda: store.get("t", "r"),
                lambda: store.look("t", "r"),
                lambda: store.chunk("t", "r", 0),
                lambda: store.refs("t"),
                lambda: store.collect("t", Bounds()),
            ):
                with pytest.raises(StoreError, match="closed"):
                    call()


class FileContract(Contract):
    """The same of a store that is kept in files: each that is opened has a place of its own."""

    @pytest.fixture(autouse=True)
    def _folder(self, tmp_path_factory):
        self._places = tmp_path_factory.mktemp("stores")
        self._count = 0

    def place(self):
        self._count += 1
        return self._places / str(self._count)
