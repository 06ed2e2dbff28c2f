"""Each store beside a model of two dictionaries: any calls in any order, by two handles, killed."""

import copy
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from tests.stores.contract import Clock, batch, decided, output, replaced
from tests.stores.killed import dies, forks, silent
from ullage.core.errors import RefNotFound, StoreError
from ullage.core.values.effects import Output, Record
from ullage.stores import (
    BoundedStore,
    Bounds,
    MemoryStore,
    SqliteStore,
    every_ref,
    forget,
)
from ullage.stores import memory as _memory
from ullage.stores._clean import DAY_S
from ullage.stores.spill import SpillStore

TENANTS = ("", "a", "\ud800")
TEXTS = ("", "one", "two\n" * 900, "\ud83d\x00", "naïve 😀", "three")
KEYS = (b"k" * 16, b"l" * 16, b"\x00" * 16)
REFS = tuple(output(text).ref for text in TEXTS)
AGED = Bounds(older_than_s=25 * DAY_S, limit=2)
"""Time passes in steps of ten days, so that no use is near the bound: a mark may be a day old."""

tenants = st.sampled_from(TENANTS)
handles = st.integers(0, 1)
records = st.one_of(
    st.builds(
        batch,
        st.sampled_from(KEYS),
        st.integers(0, 1),
        st.sampled_from((b"1", b"2")),
    ),
    st.builds(
        lambda key, ref, n: decided(key, replaced(ref), n=n),
        st.sampled_from(KEYS),
        st.sampled_from(REFS),
        st.integers(0, 1),
    ),
    st.builds(
        Record,
        st.sampled_from(KEYS),
        st.just("observed"),
        st.just(0),
        st.binary(max_size=2),
    ),
)
commits = st.tuples(
    st.lists(st.sampled_from(TEXTS).map(output), max_size=3),
    st.lists(records, max_size=3, unique_by=lambda record: record.place),
)


class Model:
    """What a store should hold, and when each thing in it was used last."""

    def __init__(self):
        self.outputs, self.records, self.used_s = {}, {}, {}

    def commit(self, tenant, outputs, records, now_s):
        for out in outputs:
            self.outputs[tenant, out.ref] = out
            self.used_s[tenant, out.ref] = now_s
        kept = [
            (one, self.records.get((tenant, *one.place)))
            for one in records
            if one.is_once
        ]
        first = tuple(
            theirs
            for ours, theirs in kept
            if theirs and theirs.data != ours.data
        )
        for record in () if first else records:
            self.records[tenant, *record.place] = record
            self.used_s[tenant, record.key] = now_s
        return first

    def find(self, tenant, keys, now_s):
        found = []
        for key in dict.fromkeys(keys):
            under = sorted(p for p in self.records if p[:2] == (tenant, key))
            found += [self.records[place] for place in under]
            if under:
                self.used_s[tenant, key] = now_s
        return tuple(found)

    def held(self, tenant):
        """What `held_of` finds."""
        refs = (ref for who, ref in self.outputs if who == tenant)
        places = sorted(p for p in self.records if p[0] == tenant)
        order = {key: at for at, key in enumerate(KEYS)}
        places.sort(key=lambda place: order[place[1]])
        return tuple(sorted(refs)), tuple(
            self.records[place] for place in places
        )

    def needs(self, tenant):
        """What the ledger names of what it holds."""
        own = [
            record
            for (who, *_), record in self.records.items()
            if who == tenant
        ]
        once = [
            record.data.decode("latin-1") for record in own if record.is_once
        ]
        return {ref for ref in REFS if any(ref in data for data in once)}

    def free(self, tenant):
        """What its ledger does not name."""
        return {
            ref for who, ref in self.outputs if who == tenant
        } - self.needs(tenant)

    def clean(self, tenant, last_s):
        """What goes: what was used last then or before, and is not needed by what stays."""
        for place in [place for place in self.records if place[0] == tenant]:
            if self.used_s[place[:2]] <= last_s:
                del self.records[place]
        gone = {
            ref
            for ref in self.free(tenant)
            if self.used_s[tenant, ref] <= last_s
        }
        for ref in gone:
            del self.outputs[tenant, ref]
        return gone

    def forget(self, tenant):
        for table in (self.outputs, self.records):
            for place in [place for place in table if place[0] == tenant]:
                del table[place]


class Store(RuleBasedStateMachine):
    """A store that two hold: two stores on one file, or one object twice.

    Attributes:
        in_files: whether it is there when it is opened again.
    """

    in_files = False

    def new(self):
        raise NotImplementedError

    @initialize()
    def begin(self):
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name)
        self.clock, self.model = Clock(), Model()
        first = self.new()
        self.stores = [first, self.new() if self.in_files else first]

    # ── what a session does ──────────────────────────────────────────────────────────

    @rule(me=handles, tenant=tenants, commit=commits)
    def commit(self, me, tenant, commit):
        prevents = self.stores[me].commit(tenant, *commit)
        assert prevents == self.model.commit(tenant, *commit, self.clock())

    @rule(
        me=handles,
        tenant=tenants,
        keys=st.lists(st.sampled_from(KEYS), max_size=3),
    )
    def find(self, me, tenant, keys):
        found = self.stores[me].find(tenant, keys)
        assert found == self.model.find(tenant, keys, self.clock())

    @rule(me=handles, tenant=tenants, ref=st.sampled_from(REFS))
    def read(self, me, tenant, ref):
        kept = self.model.outputs.get((tenant, ref))
        if kept is None:
            for read in (self.stores[me].get, self.stores[me].stat):
                with pytest.raises(RefNotFound):
                    read(tenant, ref)
            return
        shape = self.stores[me].stat(tenant, ref)
        chunks = [
            self.stores[me].chunk(tenant, ref, n)
            for n in range(len(shape.chunks))
        ]
        assert "".join(chunks) == kept.text
        assert self.stores[me].get(tenant, ref) == kept
        self.model.used_s[tenant, ref] = self.clock()

    @rule(me=handles, tenant=tenants)
    def put_other_content_under_a_ref(self, me, tenant):
        for ref in [ref for who, ref in self.model.outputs if who == tenant][
            :1
        ]:
            with pytest.raises(StoreError):
                self.stores[me].commit(tenant, [Output(ref, "forged")], [])

    # ── time and clean-up ────────────────────────────────────────────────────────────

    @rule()
    def days_pass(self):
        self.clock.days_pass(10)

    def collected(self, me, tenant, bounds):
        gone, step = set(), self.stores[me].collect(tenant, bounds)
        while True:
            gone |= {each.ref for each in step.removed}
            if step.cursor is None:
                return gone
            step = self.stores[me].collect(tenant, bounds, step.cursor)

    @rule(me=handles, tenant=tenants)
    def clean_what_is_old(self, me, tenant):
        gone = self.collected(me, tenant, AGED)
        assert gone == self.model.clean(
            tenant, self.clock() - AGED.older_than_s
        )

    @rule(me=handles, tenant=tenants)
    def clean_to_a_size(self, me, tenant):
        """Nothing that is needed goes."""
        gone = self.collected(me, tenant, Bounds(max_bytes=0, limit=2))
        assert gone <= self.model.free(tenant)
        for ref in gone:
            del self.model.outputs[tenant, ref]

    @rule(me=handles, tenant=tenants)
    def forget(self, me, tenant):
        forget(self.stores[me], tenant)
        self.model.forget(tenant)

    # ── files ────────────────────────────────────────────────────────────────────────

    @precondition(lambda self: self.in_files)
    @rule(me=handles)
    def reopen(self, me):
        self.stores[me].close()
        self.stores[me] = self.new()

    @precondition(lambda self: self.in_files)
    @rule(tenant=tenants, commit=commits, after=st.integers(0, 12))
    def a_process_is_killed_in_a_commit(self, tenant, commit, after):
        """All of it is kept, or nothing; and it can be made again."""
        made = copy.deepcopy(self.model)
        made.commit(tenant, *commit, self.clock())
        was_killed = dies(
            lambda store: store.commit(tenant, *commit),
            after,
            prepare=lambda: (self.new(),),
        )
        found = held_of(self.stores[0], tenant)
        if found == made.held(tenant):
            self.model = made
        else:
            assert was_killed
            assert found == self.model.held(tenant)
        self.model.find(tenant, KEYS, self.clock())
        self.commit(0, tenant, commit)

    def teardown(self):
        if hasattr(self, "stores"):
            for store in self.stores:
                store.close()
            self.folder.cleanup()

    @invariant()
    def holds_what_the_model_holds(self):
        if hasattr(self, "stores"):
            for tenant in TENANTS:
                refs = tuple(every_ref(self.stores[0], tenant))
                assert refs == self.model.held(tenant)[0]


def held_of(store, tenant):
    """The refs of a tenant and its records."""
    return tuple(every_ref(store, tenant)), store.find(tenant, KEYS)


class Memory(Store):
    def new(self):
        return MemoryStore(clock=self.clock)


class Bounded(Store):
    def new(self):
        return BoundedStore(
            MemoryStore(clock=self.clock), Bounds(), clock=self.clock
        )


class Sqlite(Store):
    in_files = True

    def new(self):
        return SqliteStore(self.path / "a.db", clock=self.clock)


class Spill(Sqlite):
    def new(self):
        return SpillStore(super().new(), self.path / "files", clock=self.clock)


SETTINGS = settings(max_examples=10, stateful_step_count=25, deadline=None)


@forks
@silent
@pytest.mark.parametrize(
    "machine", [Memory, Bounded, Sqlite, Spill], ids=lambda one: one.__name__
)
def test_it_is_two_dictionaries_whatever_is_done_to_it(machine):
    run_state_machine_as_test(machine, settings=SETTINGS)


# ── what is wrong is noticed ─────────────────────────────────────────────────────────────


class _InTwoSteps(SqliteStore):
    def commit(self, tenant, outputs, records):
        super().commit(tenant, outputs, [])
        return super().commit(tenant, [], records)


class InTwoSteps(Sqlite):
    def new(self):
        return _InTwoSteps(self.path / "a.db", clock=self.clock)


class _Forgetful(MemoryStore):
    def collect(self, tenant, bounds, cursor=None):
        return super().collect(
            None if bounds.older_than_s == -1 else tenant, bounds, cursor
        )


class Forgetful(Memory):
    def new(self):
        return _Forgetful(clock=self.clock)


MUTANTS = {
    "a lost race is not noticed": (
        Memory,
        _memory,
        "_find_conflicts",
        lambda *_: (),
    ),
    "what a ledger names goes": (
        Memory,
        _memory._Tenant,
        "needed",
        lambda *_: frozenset(),
    ),
    "outputs and records are kept one after the other": (
        InTwoSteps,
        _memory,
        "sys",
        sys,
    ),
    "who forgets one forgets all": (Forgetful, _memory, "sys", sys),
}
"""A machine, and what is replaced by what; nothing, where the machine itself is the mutant."""


@forks
@silent
@pytest.mark.parametrize("name", MUTANTS)
def test_a_store_that_does_not_keep_a_promise_is_found_out(monkeypatch, name):
    machine, place, attribute, wrong = MUTANTS[name]
    monkeypatch.setattr(place, attribute, wrong)
    only = settings(
        SETTINGS, max_examples=2_000, phases=[Phase.generate]
    )  # the first one ends it
    with pytest.raises(AssertionError):
        run_state_machine_as_test(machine, settings=only)
