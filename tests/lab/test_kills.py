"""Processes killed at each statement of their work, and at a few moments."""

import pytest

from lab.kills import WORKS, survived
from tests.stores.killed import forks, silent
from ullage import SqliteStore

by_name = {work.name: work for work in WORKS}


@forks
@silent
@pytest.mark.parametrize("name", by_name)
def test_whatever_a_process_was_doing_nothing_is_lost_and_nothing_is_illegal(
    name,
):
    kills, wrong = survived(by_name[name], seed=1, every=4, moments=1)
    assert wrong == []
    assert kills > 1


@forks
@silent
def test_a_store_that_keeps_records_before_outputs_is_found_out(monkeypatch):
    right = SqliteStore.commit

    def in_two_steps(self, tenant, outputs, records):
        lost = right(self, tenant, [], records)
        right(self, tenant, outputs, [])
        return lost

    monkeypatch.setattr(SqliteStore, "commit", in_two_steps)
    _, wrong = survived(by_name["fit"], seed=1, every=4, moments=0)
    assert any("lost" in what for what in wrong)
