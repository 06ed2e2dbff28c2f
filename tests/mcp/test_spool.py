"""What is cut in a session is in a file that is gone with it."""

import tracemalloc
from contextlib import closing

import pytest

from ullage.core.errors import RefNotFound, StoreError
from ullage.core.values.effects import Output
from ullage.doors.mcp.spool import Spool
from ullage.stores import ref_of
from ullage.testing import BlobsContract


def output(text):
    return Output(ref_of(text), text)


class TestSpool(BlobsContract):
    def open(self):
        return Spool()


def test_nothing_is_named_in_any_folder(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with closing(Spool()) as spool:
        spool.put("", [output("x")])
        assert [*tmp_path.iterdir()] == []


def test_what_is_full_forgets_its_older_half():
    outputs = [output(str(n) * 300) for n in range(9)]
    with closing(Spool(most_bytes=1_000)) as spool:
        for each in outputs:
            spool.put("", [each])
        with pytest.raises(RefNotFound):
            spool.stat("", outputs[0].ref)
        assert spool.get("", outputs[-1].ref) == outputs[-1]


def test_a_disk_that_is_full_is_a_store_error(monkeypatch):
    def full(*a, **k):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("tempfile.TemporaryFile", full)
    with pytest.raises(StoreError, match="No space left"):
        Spool().put("", [output("x")])


def test_what_is_kept_takes_no_memory():
    with closing(Spool()) as spool:
        spool.put("", [output("the first")])
        tracemalloc.start()
        for n in range(3_000):
            spool.put("", [output(f"{n} of many")])
        held, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert held < 20_000
        assert spool.get("", output("0 of many").ref).text == "0 of many"
        assert spool.get("", output("2999 of many").ref).text == "2999 of many"


def test_what_is_gone_from_the_file_is_a_store_error():
    with closing(Spool()) as spool:
        spool.put("", [output("x" * 900)])
        spool._files[0]._file.truncate(500)
        with pytest.raises(StoreError, match="bytes are gone"):
            spool.get("", output("x" * 900).ref)
