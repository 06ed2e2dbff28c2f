"""The contract of stores on trial: each way a store can break its word fails the test of it."""

import pytest
from msgspec.structs import replace

from ullage.core.errors import RefNotFound
from ullage.core.values.effects import Output
from ullage.stores import MemoryStore
from ullage.testing import StoreContract
from ullage.testing.halves import BlobsContract, RecordsContract


class Forgetful(MemoryStore):
    """Keeps the newest batch."""

    def commit(self, tenant, outputs, records):
        for record in records:
            own = self._tenants.get(tenant)
            under = own.records.get(record.key) if own else None
            if under:
                under.pop(record.place[1:], None)
        return super().commit(tenant, outputs, records)


class HalfRaced(MemoryStore):
    """Keeps what it can of a lost append."""

    def commit(self, tenant, outputs, records):
        first = super().commit(tenant, outputs, records)
        taken = {record.place for record in first}
        if first:
            super().commit(
                tenant, (), [one for one in records if one.place not in taken]
            )
        return first


class Nameless(MemoryStore):
    """Keeps one value for all models."""

    def commit(self, tenant, outputs, records):
        bare = [type(r)(r.key, r.kind, r.n, r.data) for r in records]
        return super().commit(tenant, outputs, bare)


class Shared(MemoryStore):
    """Knows no tenants."""

    def commit(self, tenant, outputs, records):
        return super().commit("", outputs, records)

    def find(self, tenant, keys):
        return super().find("", keys)

    def stat(self, tenant, ref):
        return super().stat("", ref)

    def chunk(self, tenant, ref, n):
        return super().chunk("", ref, n)


class Unknowing(MemoryStore):
    """Drops the kinds it does not know."""

    def find(self, tenant, keys):
        return tuple(
            r
            for r in super().find(tenant, keys)
            if r.kind != "of a later version"
        )


class Rewriting(MemoryStore):
    """Writes Unix line ends."""

    def commit(self, tenant, outputs, records):
        plain = [
            Output(o.ref, o.text.replace("\r\n", "\n"), o.kind)
            for o in outputs
        ]
        return super().commit(tenant, plain, records)


class Endless(MemoryStore):
    """Has a chunk behind the last."""

    def chunk(self, tenant, ref, n):
        return super().chunk(tenant, ref, max(min(n, 0), 0))


class Hurried(MemoryStore):
    """Cleans up whenever it is asked."""

    def collect(self, tenant, bounds, cursor=None):
        if cursor is None:
            self._collected_s.clear()
        return super().collect(tenant, bounds, cursor)


class Stopped(MemoryStore):
    """Trusts a clean-up in the future."""

    def collect(self, tenant, bounds, cursor=None):
        if cursor is None and self._collected_s.get(tenant, 0) > self._clock():
            return None
        return super().collect(tenant, bounds, cursor)


class Careless(MemoryStore):
    """Asks no ledger what it needs."""

    def collect(self, tenant, bounds, cursor=None):
        for own in self._tenants.values():
            own.needs_of = dict.fromkeys(own.records, frozenset())
        return super().collect(tenant, bounds, cursor)


class Leaving(MemoryStore):
    """Cleans up though it was asked what would go."""

    def collect(self, tenant, bounds, cursor=None):
        return super().collect(tenant, replace(bounds, dry_run=False), cursor)


BROKEN = {
    Forgetful: "test_the_first_of_what_is_written_once_stands",
    HalfRaced: "test_the_first_of_what_is_written_once_stands",
    Nameless: "test_of_the_others_the_newest_stands_for_each_name",
    Shared: "test_a_tenant_finds_only_its_own",
    Unknowing: "test_a_kind_of_a_later_version_is_kept_as_it_is",
    Rewriting: "test_every_text_comes_back_as_it_was",
    Endless: "test_its_chunks_join_to_the_text_and_are_what_the_shape_says",
    Hurried: "test_it_is_done_again_only_after_a_while_and_of_each_tenant",
    Stopped: "test_a_clock_that_was_ahead_once_stops_no_clean_up",
    Careless: "test_what_a_live_ledger_names_stays_until_the_ledger_goes",
    Leaving: "test_a_dry_run_says_the_same_and_does_nothing",
}


def contract(kind, *bases):
    class Proof(*bases):
        def open(self):
            return kind(clock=self.clock)

    return Proof()


@pytest.mark.parametrize("kind", BROKEN, ids=lambda kind: kind.__name__)
def test_a_store_that_breaks_its_word_fails_the_test_of_it(kind):
    with pytest.raises(AssertionError):
        getattr(contract(kind, StoreContract), BROKEN[kind])()


@pytest.mark.parametrize(
    "kind", [Forgetful, HalfRaced, Nameless, Shared, Rewriting]
)
def test_whatever_it_does_wrong_the_comparison_with_dictionaries_tells_the_shortest_way(
    kind,
):
    with pytest.raises(AssertionError, match=r"after [123] commits"):
        contract(
            kind, StoreContract
        ).test_any_sequence_of_commits_equals_two_dictionaries()


def test_each_half_is_proved_alone():
    for half in (BlobsContract, RecordsContract):
        proof = contract(MemoryStore, half)
        for name in dir(proof):
            if name.startswith("test_"):
                getattr(proof, name)()


def test_an_error_that_is_of_another_kind_is_not_taken_for_it():
    class Wrong(MemoryStore):
        def stat(self, tenant, ref):
            try:
                return super().stat(tenant, ref)
            except RefNotFound:
                raise KeyError(ref) from None

    with pytest.raises(KeyError):
        contract(
            Wrong, BlobsContract
        ).test_an_unknown_ref_is_not_found_whatever_it_looks_like()
