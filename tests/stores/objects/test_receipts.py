"""Receipts beside a bucket: rows of the store, and no object; nothing of them is lost with it."""

from contextlib import closing

import pytest

from tests.cli.terminal import ullage
from tests.session.test_receipts import recalling
from ullage import Session, Usage
from ullage.core.values.receipts import ReceiptTotals, summed
from ullage.session.receipts.writer import close
from ullage.stores import SqliteStore, receipts_of
from ullage.stores.objects import ObjectStorage

pytestmark = pytest.mark.xdist_group("postgres")


def objects_of(bucket):
    url = bucket.url(prefix="receipts")
    return ObjectStorage(url, least_bytes=0)


def test_a_conversation_whose_texts_are_objects_has_its_receipts(
    bucket, tmp_path
):
    path = tmp_path / "kept.db"
    _, request, _ = recalling()
    with closing(SqliteStore(path, objects=objects_of(bucket))) as store:
        session = Session("gpt-4.1", store=store)
        for length in (1, 3, 5):
            view = session.fit(
                {**request, "messages": request["messages"][:length]}
            )
            view.observe(
                Usage(fresh_tokens=view.sent.estimate, output_tokens=9)
            )
        assert store.refs("")
        close(store)
        kept = receipts_of(store).receipts()
    with closing(SqliteStore(path)) as store:  # the bucket is out of reach
        assert store.receipts() == kept
        sums = summed(kept).get((), ReceiptTotals())
    assert sums.requests == 3
    assert sums.raw_usd > sums.sent_usd > 0
    assert "3 requests" in ullage("report", "--store", str(path)).text
