"""What one tenant's stored content tells another: nothing, also not by the work it saves."""

from lab.bench.tenants import measured
from ullage import MemoryStore, SqliteStore
from ullage.core.history.canon import ref_of
from ullage.core.values.effects import Output, pieces
from ullage.stores import _packing

TEXT = "a line of the output\n" * 500
OUTPUT = Output(ref_of(TEXT), TEXT)


def work_of(store, tenant, monkeypatch):
    """What is packed for a commit, and how many rows it adds."""
    packed = []
    with store._file.connection(store, "stat") as db:
        before = db.total_changes
    with monkeypatch.context() as patch:
        noted = lambda text: packed.append(len(text)) or pieces(text)  # noqa: E731
        patch.setattr(_packing, "pieces", noted)
        store.commit(tenant, [OUTPUT], ())
    return packed, db.total_changes - before


def test_what_another_tenant_holds_is_written_anew(tmp_path, monkeypatch):
    """It was kept once for all: whoever guessed a secret saw that setting it aside was faster."""
    store = SqliteStore(tmp_path / "u.db")
    nobody = work_of(store, "one", monkeypatch)
    another = work_of(store, "other", monkeypatch)
    assert another == nobody
    packed, rows = work_of(store, "other", monkeypatch)
    assert (packed, rows) == ([], 1), "of one's own only the last use is noted"
    assert (
        store.get("one", OUTPUT.ref)
        == store.get("other", OUTPUT.ref)
        == OUTPUT
    )


def test_the_measure_tells_the_three_cases_apart():
    figures = measured(MemoryStore(), rounds=3, chars=2_000)
    assert list(figures) == ["nobody's", "another's", "one's own"]
    assert all(seconds >= 0 for seconds in figures.values())
