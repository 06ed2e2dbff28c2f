"""Conversations on a server keep what those in a file keep, and go on from any machine."""

import random
import threading
from contextlib import closing

import pytest

from tests.stores.postgres.cable import Cable
from tests.stores.test_conversations import called, say, talk, wire
from ullage.core.errors import ConfigError, StoreError
from ullage.core.values.limits import Limits
from ullage.documents.conversation import (
    Conversation,
    ConversationStore,
    PostgresConversations,
)

pytestmark = pytest.mark.xdist_group("postgres")

ODD = [say("a\x00b"), say("\ud800 lone"), say(""), {**say("x"), "name": "é"}]


@pytest.fixture
def kept(url):
    with closing(
        PostgresConversations(url, clock=lambda: 1_800_000_000)
    ) as kept:
        yield kept


def shown(stored):
    return [(one.message, one.is_compacted, one.created_at) for one in stored]


@pytest.mark.parametrize("seed", range(3))
def test_whatever_is_done_it_is_as_it_would_be_in_a_file(kept, tmp_path, seed):
    rng, names = random.Random(seed), ("one", "two")
    file = ConversationStore(tmp_path / "chat.db", clock=lambda: 1_800_000_000)
    both, ids = (kept, file), {name: ([], []) for name in names}
    for step in range(25):
        name = rng.choice(names)
        if rng.random() < 0.6 or not ids[name][0]:
            new = rng.choice(
                [talk(rng.randrange(3)), called(step), [say(f"{step}")], ODD]
            )
            for store, mine in zip(both, ids[name], strict=True):
                mine += store.append(name, new)
        else:
            place = rng.randrange(len(ids[name][0]))
            said = []
            for store, mine in zip(both, ids[name], strict=True):
                try:
                    said.append(
                        store.mark_compacted(
                            mine[place], f"at {step}", tokens=step
                        ).text
                    )
                except ConfigError as error:
                    said.append(str(error).partition("(")[0])  # an id follows
            assert said[0] == said[1]
        for name in names:
            assert shown(kept.load(name)) == shown(file.load(name))
            assert shown(kept.history(name)) == shown(file.history(name))
            ours, theirs = (store.newest_compaction(name) for store in both)
            assert (ours and ours.text) == (theirs and theirs.text)
    gone = [store.forget("one") for store in both]
    assert gone[0] == gone[1]
    assert kept.history("one") == ()


def test_odd_names_are_conversations_of_their_own(kept):
    for name in ("", "a\x00b", "\ud800"):
        kept.append(name, [say(repr(name))])
    for name in ("", "a\x00b", "\ud800"):
        assert wire(kept.load(name)) == [say(repr(name))]


def test_a_message_that_is_not_there_cannot_be_a_boundary(kept):
    for id in ("nobody's", "a\x00b", "\ud800"):
        with pytest.raises(StoreError, match="no such message"):
            kept.mark_compacted(id, "summary", tokens=1)


@pytest.mark.parametrize(
    ("what", "number"), [(w, n) for w in ("asked", "answered") for n in (0, 1)]
)
def test_a_cable_that_is_cut_doubles_and_loses_no_message(
    server, url, what, number
):
    cable = Cable(server.port)
    through = url.replace(f":{server.port}/", f":{cable.port}/")
    with closing(PostgresConversations(through)) as kept:
        kept.append("s", [say("before")])
        cable.cut(what, number)
        ids = kept.append("s", talk(2))
        kept.append("s", [say("after")])
        cable.cut(what, number)
        kept.mark_compacted(ids[0], "it began", tokens=3)
        assert wire(kept.history("s")) == [
            say("before"),
            *talk(2),
            say("after"),
        ]
        assert wire(kept.load("s"))[1:] == [*talk(2), say("after")]
    cable.close()


def test_what_workers_append_at_once_stays_whole_and_in_order(url):
    stores = [PostgresConversations(url) for _ in range(4)]

    def work(me):
        for n in range(8):
            stores[me].append(
                "s", [say(f"{me} {n} {part}") for part in range(3)]
            )

    threads = [threading.Thread(target=work, args=(me,)) for me in range(4)]
    for thread in threads:
        thread.start()
    seen = []
    while any(thread.is_alive() for thread in threads):
        now = [message["content"] for message in wire(stores[0].history("s"))]
        assert now[: len(seen)] == seen, (
            "what was read before is no longer in front"
        )
        seen = now
    said = [message["content"] for message in wire(stores[0].history("s"))]
    assert len(said) == 4 * 8 * 3
    for start in range(0, len(said), 3):
        me, n, _ = said[start].split()
        assert said[start : start + 3] == [
            f"{me} {n} {part}" for part in range(3)
        ]
    for store in stores:
        store.close()


def test_a_conversation_goes_on_on_another_machine(url):
    limits = Limits(window_tokens=3_000)
    views = []
    for turn in range(14):
        with closing(PostgresConversations(url)) as kept:
            chat = Conversation(
                kept, "chat", "gpt-4.1", store=url, limits=limits
            )
            chat.append(
                [say(f"{turn} " + "word " * 400), say("Yes.", "assistant")]
            )
            chat.append([say(f"And {turn}?")])
            views.append(dict(chat.fit({"model": "gpt-4.1"})))
            chat.close()
    assert kept.name == "postgresql"
    with closing(PostgresConversations(url)) as kept:
        assert kept.newest_compaction("chat") is not None
        again = Conversation(kept, "chat", "gpt-4.1", store=url, limits=limits)
        assert (
            again.fit({"model": "gpt-4.1"})["messages"]
            == views[-1]["messages"]
        )
        again.close()
