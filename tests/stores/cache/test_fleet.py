"""Workers that share a store, a bucket and a cache: whoever answers, the same is sent."""

import json
from contextlib import closing
from random import Random

import pytest

import ullage
from tests.stores.postgres.cable import Cable
from ullage.stores import MemoryStore, open_store

pytestmark = pytest.mark.xdist_group("postgres")

TURNS = 12


def messages_of(turn):
    messages = [{"role": "user", "content": "Mend it."}]
    for n in range(turn):
        function = {"name": "read", "arguments": json.dumps({"n": n})}
        call = {"id": f"c{n}", "type": "function", "function": function}
        random = Random(n)
        text = "\n".join(
            f"{n} {line} {random.getrandbits(60)}" for line in range(800)
        )
        messages.append(
            {"role": "assistant", "content": None, "tool_calls": [call]}
        )
        messages.append(
            {"role": "tool", "tool_call_id": f"c{n}", "content": text}
        )
    return messages


def sent(store, turn):
    """What a worker sends that opens the conversation anew, and what can be read behind it."""
    limits = ullage.Limits(window_tokens=40_000)
    session = ullage.Session(
        "gpt-4.1", store=store, limits=limits, recall=True
    )
    view = session.fit({"model": "gpt-4.1", "messages": messages_of(turn)})
    texts = {ref: store.get("", ref).text for ref in store.refs("")}
    return json.dumps(view["messages"]), texts


def test_a_cache_that_is_lost_and_a_bucket_that_is_cut_off_change_no_byte_that_is_sent(
    tmp_path, bucket, another
):
    alone, cable = MemoryStore(), Cable(bucket.port)
    place = tmp_path / "kept.db", bucket.url(cable.port, "fleet"), another.url
    with (
        closing(open_store(*place)) as one,
        closing(open_store(*place)) as two,
    ):
        for turn in range(TURNS):
            if turn == 4:
                another.emptied()
            if turn == 6:
                cable.cut("asked", 0)
            if turn == 8:
                another.kill()
            wanted, texts = sent(alone, turn)
            for store in (one, two)[:: (-1) ** turn]:
                assert sent(store, turn) == (wanted, texts), turn
        assert (len(texts) > 3, cable.cuts) == (True, 1)
    cable.close()
