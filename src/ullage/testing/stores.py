"""The proof of `ullage.stores.Store`: that of its two halves, and of what keeps it in bounds."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from ullage import Address, Output, Record, Replace, ReplaceSpan
from ullage.core.errors import RefNotFound, StoreError, UllageError
from ullage.core.values.owners import owner_of
from ullage.stores import (
    DAY_S,
    Bounds,
    Collected,
    every_ref,
    forget,
    receipts_of,
    ref_of,
)
from ullage.testing._samples import (
    KEYS,
    batch,
    decided,
    expect,
    fails_with,
    output,
    random_commit,
    receipt,
    smallest,
    store_receipts,
)
from ullage.testing.halves import BlobsContract, RecordsContract

__all__ = ["StoreContract"]

AGED = Bounds(older_than_s=30 * DAY_S)


class _Model:
    """What a store should do, as two dictionaries and no thought of speed."""

    def __init__(self) -> None:
        self.outputs: dict[tuple[str, str], Output] = {}
        self.records: dict[tuple[Any, ...], bytes] = {}

    def commit(
        self, tenant: str, outputs: Sequence[Output], records: Sequence[Record]
    ) -> tuple[Record, ...]:
        for out in outputs:
            self.outputs.setdefault((tenant, out.ref), out)
        winners = tuple(
            Record(
                one.key,
                one.kind,
                one.n,
                self.records[tenant, *one.place],
                one.name,
            )
            for one in records
            if one.is_once
            and self.records.get((tenant, *one.place), one.data) != one.data
        )
        if not winners:
            self.records |= {(tenant, *one.place): one.data for one in records}
        return winners

    def find(self, tenant: str, keys: Sequence[bytes]) -> tuple[Record, ...]:
        return tuple(
            Record(key, kind, n, data, name)
            for lookup in dict.fromkeys(keys)
            for (owner, key, kind, n, name), data in sorted(
                self.records.items()
            )
            if owner == tenant and key == lookup
        )

    def refs(self, tenant: str) -> tuple[str, ...]:
        refs = (ref for owner, ref in self.outputs if owner == tenant)
        return tuple(
            sorted(refs, key=lambda ref: ref.encode("utf-8", "surrogatepass"))
        )


class StoreContract(BlobsContract, RecordsContract):
    """Every promise of `ullage.stores.Store`. Inherit from it and say how one is opened.

    What `open` opens must take its time from ``clock``:

        class TestMine(StoreContract):
            def open(self):
                return MyStore(clock=self.clock)
    """

    def test_any_sequence_of_commits_equals_two_dictionaries(self) -> None:
        """Sixty sequences; one that fails is made as short as it can be."""
        for seed in range(60):
            rng = random.Random(seed)
            commits = [random_commit(rng) for _ in range(rng.randrange(9))]
            if self._differs(commits):
                short = smallest(
                    commits, lambda steps: bool(self._differs(steps))
                )
                history = f"after {len(short)} commits: {short!r:.2000}"
                raise AssertionError(f"{self._differs(short)}\n  {history}")

    def _differs(self, commits: Sequence[Any]) -> str:
        model = _Model()
        keys = [KEYS[2], b"absent", *KEYS, KEYS[0]]
        with self.opened() as store:
            try:
                for commit in commits:
                    expect(
                        store.commit(*commit),
                        model.commit(*commit),
                        "what prevents it",
                    )
                for tenant in {tenant for tenant, _, _ in commits} | {"never"}:
                    records = store.find(tenant, iter(keys))
                    expect(records, model.find(tenant, keys), "find")
                    expect(
                        tuple(every_ref(store, tenant)),
                        model.refs(tenant),
                        "refs",
                    )
                for (tenant, ref), output in model.outputs.items():
                    expect(store.get(tenant, ref), output, "get")
            except (AssertionError, UllageError) as error:
                return str(error)
        return ""

    def test_a_lost_race_keeps_the_outputs(self) -> None:
        """They are content-addressed: the loser's view may show them too."""
        with self.opened() as store:
            store.commit("t", [], [batch(b"k", 0, b"first")])
            late = output("found by the loser")
            expect(
                store.commit("t", [late], [batch(b"k", 0, b"2")]),
                (batch(b"k", 0, b"first"),),
                "the loser is given what is kept",
            )
            expect(store.get("t", late.ref), late, "its outputs are kept")

    def test_no_record_is_kept_whose_outputs_are_not(self) -> None:
        """Outputs before records: what a ledger names is there."""
        forged = Output(ref_of("original"), "forged")
        with self.opened() as store:
            store.put("t", [output("original")])
            commit = (
                "t",
                [output("innocent"), forged],
                [batch(b"k", 0, b"d")],
            )
            fails_with(
                StoreError, lambda: store.commit(*commit), "the ref is taken"
            )
            expect(store.find("t", [b"k"]), (), "no record is kept")

    def test_the_newest_records_of_a_kind_are_listed(self) -> None:
        """By those who look at a store; one that cannot says so in a StoreError."""
        records = [
            Record(bytes([n]) * 16, "outline", 0, b"%d" % n) for n in range(4)
        ]
        with self.opened() as store:
            for record in records:
                self.clock.days_pass(1)
                store.append("t", [record])
            store.append("u", [Record(b"u" * 16, "outline", 0, b"theirs")])
            store.append("t", [batch(b"k" * 16, 0, b"of another kind")])
            try:
                newest = store.newest("t", "outline", 3)
            except StoreError:
                return
            expect(
                [record for record, _ in newest],
                records[:0:-1],
                "the newest first",
            )
            expect(store.newest("t", "latest", 3), (), "none of a kind")

    def test_refs_come_in_pages(self) -> None:
        """Whatever is put or taken away meanwhile, what stays is in one page."""
        outputs = [output(f"number {n}") for n in range(25)]
        refs = sorted(out.ref for out in outputs)
        with self.opened() as store:
            store.put("t", outputs)
            store.put("u", [output("somebody else's")])
            expect(
                store.refs("t", limit=10), tuple(refs[:10]), "the first page"
            )
            expect(
                store.refs("t", refs[9], 10), tuple(refs[10:20]), "the second"
            )
            expect(store.refs("t", refs[19], 10), tuple(refs[20:]), "the last")
            expect(store.refs("t", refs[-1], 10), (), "nothing behind it")
            expect(
                store.existing_refs(["never", *refs[:3]]),
                frozenset(refs[:3]),
                "held by anybody",
            )

    def test_a_closed_store_refuses_everything(self) -> None:
        """And may be closed twice."""
        with self.opened() as store:
            store.close()
            store.close()
            calls = {
                "put": lambda: store.put("t", [output("x")]),
                "append": lambda: store.append("t", [batch(b"k", 0, b"d")]),
                "find": lambda: store.find("t", [b"k"]),
                "get": lambda: store.get("t", "r"),
                "stat": lambda: store.stat("t", "r"),
                "chunk": lambda: store.chunk("t", "r", 0),
                "refs": lambda: store.refs("t"),
                "existing_refs": lambda: store.existing_refs(["r"]),
                "collect": lambda: store.collect("t", Bounds()),
            }
            for name, call in calls.items():
                expect(
                    "closed" in str(fails_with(StoreError, call, name)),
                    True,
                    name,
                )

    # Receipts, where a store keeps them

    def test_receipts_are_kept_in_place_of_earlier_ones_and_given_in_order(
        self,
    ) -> None:
        """A write that is done twice counts once, and an earlier state takes no place."""
        with self.opened() as store:
            if receipts_of(store) is None:
                return
            early = receipt("a", 1)
            late = receipt("a", 3)
            third = receipt("b", 2)
            receipts_of(store).keep_receipts([third, early])
            expect(store_receipts(store), (early, third), "in their order")
            receipts_of(store).keep_receipts([late])
            receipts_of(store).keep_receipts([late])
            receipts_of(store).keep_receipts([early])
            expect(
                store_receipts(store),
                (late, third),
                "the newest sums of each process",
            )
            receipts_of(store).keep_receipts([])

    def test_receipts_are_given_by_their_days(self) -> None:
        """Both ends are included; names from outside come back as they were."""
        days = ("2026-11-25", "2026-11-26", "2026-11-27")
        odd = "\ud800 ' \u202e"
        receipts = tuple(receipt("a", 1, day=day, tenant=odd) for day in days)
        with self.opened() as store:
            if receipts_of(store) is None:
                return
            expect(store_receipts(store), (), "none at first")
            receipts_of(store).keep_receipts(receipts)
            expect(store_receipts(store), receipts, "all of them")
            expect(
                receipts_of(store).receipts(days[1]),
                receipts[1:],
                "since a day",
            )
            expect(
                receipts_of(store).receipts(days[1], days[1]),
                receipts[1:2],
                "of one day",
            )

    def test_receipts_outlive_the_conversations_they_are_about(self) -> None:
        """They hold no content: neither a clean-up nor forgetting a tenant takes them."""
        with self.opened() as store:
            if receipts_of(store) is None:
                return
            store.commit("t", [output("content")], [batch(b"k", 0, b"d")])
            entry = receipt("a", 1, tenant="t")
            receipts_of(store).keep_receipts([entry])
            forget(store, "t")
            self.collected(store, None, Bounds(older_than_s=0))
            expect(store.refs("t"), (), "the content is gone")
            expect(store_receipts(store), (entry,), "the receipts are there")

    def test_a_tenant_is_forgotten_with_its_conversations(self) -> None:
        """A conversation with a name is an owner of its own, and nobody else's."""
        with self.opened() as store:
            conversations = (owner_of("t", "one"), owner_of("t", ""))
            # the names next to those of the tenant's in any order
            others = ("s", "t ", "t\x1e", "tt", owner_of("tt", "one"), "T")
            for owner in ("t", *conversations, *others):
                outputs = [output("of all"), output(f"of {owner}")]
                store.commit(owner, outputs, [batch(b"k", 0, b"d")])
            self.collected(store, "t", Bounds(older_than_s=-1, dry_run=True))
            expect(
                len(store.refs(conversations[0])), 2, "alone it is not theirs"
            )
            forget(store, "t")
            for owner in ("t", *conversations):
                expect(store.refs(owner), (), f"{owner!r} has no output")
                expect(
                    store.find(owner, [b"k"]), (), f"{owner!r} has no record"
                )
            for owner in others:
                expect(len(store.refs(owner)), 2, f"{owner!r} has its outputs")
                expect(
                    len(store.find(owner, [b"k"])),
                    1,
                    f"{owner!r} has its record",
                )

    # Clean-up

    def collected(
        self, store: Any, tenant: str | None, bounds: Bounds
    ) -> Collected:
        """Clean up to the end, in steps of two rows.

        Args:
            store: the store.
            tenant: whose rows; None: everybody's.
            bounds: what goes; ``limit`` is set here.

        Raises:
            AssertionError: a step was refused, or the clean-up has no end.
        """
        cursor = None
        total = Collected((), 0, 0)
        for _ in range(10_000):
            step = store.collect(tenant, replace(bounds, limit=2), cursor)
            if step is None:
                raise AssertionError("a clean-up that is due was not done")
            total = total.then(step)
            cursor = step.cursor
            if cursor is None:
                return total
        raise AssertionError("a clean-up did not come to its end")

    def test_without_bounds_nothing_goes(self) -> None:
        """However much time passes."""
        with self.opened() as store:
            store.commit("t", [output("x")], [batch(b"k", 0, b"d")])
            self.clock.days_pass(10_000)
            result = self.collected(store, "t", Bounds())
            expect((result.removed, result.records), ((), 0), "nothing goes")
            expect(store.refs("t"), (output("x").ref,), "it is there")

    def test_what_was_not_used_for_long_goes_and_says_so(self) -> None:
        """Used: put, read, looked at, looked up."""
        unused, read, looked, again, fresh = map(output, "abcde")
        with self.opened() as store:
            store.commit(
                "t", [unused, read, looked, again], [batch(b"old", 0, b"d")]
            )
            store.commit(
                "t", [], [batch(b"found", 0, b"d"), batch(b"more", 0, b"d")]
            )
            self.clock.days_pass(29)
            store.get("t", read.ref)
            store.stat("t", looked.ref)
            store.commit("t", [again, fresh], [batch(b"more", 1, b"e")])
            store.find("t", [b"found"])
            self.clock.days_pass(2)
            result = self.collected(store, "t", AGED)
            expect(
                [removed.ref for removed in result.removed],
                [unused.ref],
                "the unused one goes",
            )
            removed = result.removed[0]
            expect(
                (removed.tenant, removed.needed), ("t", False), "and says so"
            )
            expect(result.records, 1, "the unused key goes")
            expect(
                store.refs("t"),
                _refs(read, looked, again, fresh),
                "the others stay",
            )
            keys = [r.key for r in store.find("t", [b"old", b"found"])]
            expect(keys, [b"found"], "what was looked up stays")
            expect(
                len(store.find("t", [b"more"])),
                2,
                "a key goes as a whole or not at all",
            )
            fails_with(
                RefNotFound, lambda: store.get("t", unused.ref), "it is gone"
            )
            store.put("t", [unused])
            expect(store.get("t", unused.ref), unused, "it can be put again")

    def test_what_a_live_ledger_names_stays_until_the_ledger_goes(
        self,
    ) -> None:
        """And so does what the index of a summary names."""
        named = output("named")
        listed = output("listed")
        free = output("free")
        index = output(
            f"Index of messages\noutput ref={listed.ref} (6 characters)"
        )
        span = ReplaceSpan(b"a" * 16, b"b" * 16, "[summary]", index.ref, "why")
        with self.opened() as store:
            records = [
                decided(b"k", _replaced(named.ref)),
                decided(b"s", span),
            ]
            store.commit("t", [named, listed, free, index], records)
            for _ in range(3):
                self.clock.days_pass(20)
                store.find("t", [b"k", b"s"])
            result = self.collected(store, "t", AGED)
            expect(
                [removed.ref for removed in result.removed],
                [free.ref],
                "only what nothing names",
            )
            expect(
                store.refs("t"), _refs(named, listed, index), "the others stay"
            )
            self.clock.days_pass(40)
            expect(
                self.collected(store, "t", AGED).records, 2, "the ledger goes"
            )
            expect(store.refs("t"), (), "and what it named")

    def test_the_ledger_of_one_tenant_keeps_nothing_of_another(self) -> None:
        """Though both hold the same."""
        one = output("both hold it")
        with self.opened() as store:
            store.commit("a", [one], [decided(b"k", _replaced(one.ref))])
            store.put("b", [one])
            self.clock.days_pass(40)
            store.find("a", [b"k"])
            result = self.collected(store, None, AGED)
            removals = [
                (removed.tenant, removed.ref) for removed in result.removed
            ]
            expect(removals, [("b", one.ref)], "the one without a ledger goes")
            expect(store.get("a", one.ref), one, "the other's stays")

    def test_over_its_size_the_longest_unused_go_first_and_what_is_needed_last(
        self,
    ) -> None:
        """What is needed goes only if the bounds say so."""
        texts = [
            f"{n} " + random.Random(n).randbytes(5_000).hex() for n in range(6)
        ]
        needed, *rest = map(output, texts)
        with self.opened() as store:
            store.commit("t", [needed], [decided(b"k", _replaced(needed.ref))])
            for out in rest:
                self.clock.days_pass(2)
                store.put("t", [out])
            self.clock.days_pass(2)
            store.get("t", rest[0].ref)
            size = self.collected(store, "t", Bounds(dry_run=True)).left_bytes
            result = self.collected(store, "t", Bounds(max_bytes=size // 2))
            removed = [removed.ref for removed in result.removed]
            expect(
                removed,
                [out.ref for out in rest[1:4]],
                "the longest unused go first",
            )
            expect(result.left_bytes <= size // 2, True, "down to the bound")
            result = self.collected(
                store, "t", Bounds(max_bytes=0, keep=frozenset({rest[4].ref}))
            )
            expect(
                [removed.ref for removed in result.removed],
                [rest[0].ref],
                "not what is to be kept",
            )
            expect(
                store.refs("t"), _refs(needed, rest[4]), "nor what is needed"
            )
            result = self.collected(
                store, "t", Bounds(max_bytes=0, even_needed=True)
            )
            removals = [
                (removed.ref, removed.needed) for removed in result.removed
            ]
            expect(
                removals,
                [(rest[4].ref, False), (needed.ref, True)],
                "what is needed goes last",
            )
            expect(
                (result.left_bytes, store.refs("t")),
                (0, ()),
                "nothing is left",
            )

    def test_a_dry_run_says_the_same_and_does_nothing(self) -> None:
        """All in one step."""
        with self.opened() as store:
            outputs = [output(f"number {n}") for n in range(5)]
            store.commit(
                "t", outputs, [batch(b"k", 0, b"d"), batch(b"l", 0, b"d")]
            )
            self.clock.days_pass(40)
            would = store.collect("t", replace(AGED, dry_run=True, limit=2))
            expect(store.refs("t"), _refs(*outputs), "it does nothing")
            result = self.collected(store, "t", AGED)
            forecast = (
                would.removed,
                would.records,
                would.left_bytes,
                would.cursor,
            )
            expect(
                forecast,
                (result.removed, result.records, result.left_bytes, None),
                "it says the same",
            )
            expect(
                (len(result.removed), result.records), (5, 2), "all of it goes"
            )

    def test_one_tenant_is_cleaned_and_the_others_are_not(self) -> None:
        """Whatever their names are."""
        with self.opened() as store:
            for tenant in ("", "a", "\ud800"):
                store.commit(
                    tenant, [output("shared")], [batch(b"k", 0, b"d")]
                )
            self.clock.days_pass(40)
            expect(
                len(self.collected(store, "a", AGED).removed),
                1,
                "its own goes",
            )
            expect(
                self.collected(store, "never", AGED).removed,
                (),
                "there is nothing",
            )
            there = [
                store.refs(tenant) != () for tenant in ("", "a", "\ud800")
            ]
            expect(there, [True, False, True], "the others' stay")
            removed = {
                removed.tenant
                for removed in self.collected(store, None, AGED).removed
            }
            expect(removed, {"", "\ud800"}, "everybody's go")

    def test_it_is_done_again_only_after_a_while_and_of_each_tenant(
        self,
    ) -> None:
        """So that of many processes one does it."""
        daily = Bounds(older_than_s=0, every_s=DAY_S)
        with self.opened() as store:
            for tenant, days, due in (
                ("t", 0.9, True),
                ("t", 0, False),
                ("u", 0, True),
                (None, 0.2, True),
                ("t", 0, True),
            ):
                if due:
                    is_forecast = (
                        store.collect(tenant, replace(daily, dry_run=True))
                        is not None
                    )
                    expect(is_forecast, True, "a dry run is no clean-up")
                was_cleaned = store.collect(tenant, daily) is not None
                expect(was_cleaned, due, f"whether it is due of {tenant!r}")
                self.clock.days_pass(days)

    def test_a_clock_that_was_ahead_once_stops_no_clean_up(self) -> None:
        """What lies in the future counts as now."""
        daily = Bounds(older_than_s=30 * DAY_S, every_s=DAY_S)
        with self.opened() as store:
            self.clock.days_pass(10_000)
            store.commit("t", [output("x")], [batch(b"k", 0, b"d")])
            store.collect("t", daily)
            self.clock.days_pass(-10_000)
            result = self.collected(store, "t", daily)
            expect(
                (result.removed, result.records),
                ((), 0),
                "it is due, and nothing is old yet",
            )
            self.clock.days_pass(31)
            result = self.collected(store, "t", daily)
            expect(
                (len(result.removed), result.records),
                (1, 1),
                "a month later it goes",
            )


def _replaced(ref: str) -> Replace:
    return Replace(Address("result", "call", 0), ref, "[cut]", "pruned", "why")


def _refs(*outputs: Output) -> tuple[str, ...]:
    return tuple(sorted(out.ref for out in outputs))
