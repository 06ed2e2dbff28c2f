"""What `ullage fit` sets aside, `ullage gc` lets go of, when it is old or too much."""

import json
import random

import pytest

from tests.cli.terminal import conversation, told, ullage
from tests.stores.contract import Clock, decided, output, replaced
from ullage.core.values.notices import pointers
from ullage.stores import SpillStore, SqliteStore

NEEDED, OLD, NEW = (
    output(f"{name} {random.Random(name).randbytes(40_000).hex()}")
    for name in ("a", "b", "c")
)


@pytest.fixture
def kept(tmp_path):
    """Two outputs of long ago, one of them named by a ledger, and one of now."""
    path, clock = tmp_path / "kept.db", Clock()
    clock.now_s = 1_700_000_000.0
    old = SpillStore(
        SqliteStore(path, clock=clock), tmp_path / "spill", clock=clock
    )
    old.commit("t", [NEEDED, OLD], [])
    old.close()
    now = SpillStore(SqliteStore(path), tmp_path / "spill")
    now.commit("t", [NEW], [decided(b"k", replaced(NEEDED.ref))])
    now.close()
    return path


def refs(kept):
    store = SqliteStore(kept)
    found = store.refs("t")
    store.close()
    return found


@pytest.mark.says(
    "output-cache-and-compaction",
    "1.9 GC (optional)",
    "`ToolOutputRef` that is no longer referenced by compaction etc. can be targeted for deletion.",
    lives="ullage.stores.Bounds",
    see="ullage gc --older-than 30d",
)
def test_what_is_old_goes_and_what_a_view_names_stays(kept):
    size = kept.stat().st_size
    ran = ullage("gc", "--older-than", "30d", "--store", kept)
    assert ran.status == 0
    first, last = ran.text.splitlines()
    assert first.startswith(f"{OLD.ref}  ")
    assert first.endswith("last used 2023-11-14")
    assert last.startswith("1 outputs of ")
    assert "0 ledger records went" in last
    assert refs(kept) == tuple(sorted((NEEDED.ref, NEW.ref)))
    assert kept.stat().st_size < size - 30_000  # the file got smaller too
    assert ran.err == ""


def test_a_dry_run_prints_what_would_go_and_keeps_it(kept):
    ran = ullage("gc", "--older-than", "4w", "--dry-run", "--store", kept)
    assert OLD.ref in ran.text
    assert "would go" in ran.text
    assert len(refs(kept)) == 3
    told_as_json = ullage(
        "gc", "--older-than", "4w", "--dry-run", "--json", "--store", kept
    ).json
    assert [gone["ref"] for gone in told_as_json["removed"]] == [OLD.ref]


def test_a_size_takes_what_is_needed_only_when_told(kept):
    assert (
        NEEDED.ref
        not in ullage("gc", "--max-size", "1kB", "--store", kept).text
    )
    assert refs(kept) == (NEEDED.ref,)
    ran = ullage("gc", "--max-size", "1kB", "--even-needed", "--store", kept)
    assert "needed by a view" in ran.text
    assert refs(kept) == ()


def test_spill_files_go_with_their_outputs(kept):
    ullage(
        "gc",
        "--older-than",
        "30d",
        "--store",
        kept,
        "--spill",
        kept.parent / "spill",
    )
    left = {file.stem for file in (kept.parent / "spill").iterdir()}
    assert left == {NEEDED.ref, NEW.ref}


def test_another_tenants_are_left_alone(kept):
    ullage("gc", "--older-than", "30d", "--tenant", "u", "--store", kept)
    assert len(refs(kept)) == 3


def test_run_often_it_works_rarely(kept):
    assert (
        ullage(
            "gc", "--older-than", "30d", "--every", "12h", "--store", kept
        ).status
        == 0
    )
    again = ullage(
        "gc", "--older-than", "0s", "--every", "12h", "--store", kept
    )
    assert again.text == "cleaned up not long ago: nothing done\n"
    assert len(refs(kept)) == 2


def test_nothing_of_what_was_kept_is_printed(kept):
    request = json.dumps(conversation("secret line\n" * 2_000)).encode()
    fitted = ullage("fit", "-", "--store", kept, "--recall", stdin=request)
    ran = ullage("gc", "--max-size", "0", "--even-needed", "--store", kept)
    (pointer,) = pointers(fitted.json["messages"][2]["content"])
    assert pointer.ref in ran.text
    assert "secret" not in ran.text + ran.err
    assert str(kept.parent) not in ran.text + ran.err


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ((), "--older-than"),
        (("--older-than", "soon"), "30d"),
        (("--max-size", "-1"), "1GB"),
        (("--max-size", "lots"), "1GB"),
    ],
)
def test_what_is_wrong_is_told_in_one_line(kept, options, says):
    ran = ullage("gc", *options, "--store", kept)
    assert ran.status == 2
    assert says in told(ran)
    assert len(refs(kept)) == 3
