"""Many conversations behind one object: kept apart, bounded, and made anew as they were."""

import asyncio
import gc
import threading

import pytest

from tests.sessions import long_history, request
from ullage import AsyncSessions, Budget, ConfigError, Limits, Sessions
from ullage.session.closing import AsyncClosing, Closing
from ullage.stores import MemoryStore
from ullage.stores.threaded import Threaded

SMALL = Limits(window_tokens=6_000)
MODEL = "gpt-4.1"


def made(**more):
    return Sessions(
        MODEL,
        **{"format": "openai-chat", "limits": SMALL, "recall": True} | more,
    )


def history(marker, turns=12):
    messages = long_history("openai-chat", turns)
    return [
        {**message, "content": f"{marker} {message['content']}"}
        if message.get("content")
        else message
        for message in messages
    ]


def asked(marker="a", turns=12):
    return request("openai-chat", history(marker, turns))


def opened(session, ref):
    call = {"id": "r", "type": "function"}
    arguments = f'{{"tool_call_id": "{ref}"}}'
    result = session.recall(
        {
            **call,
            "function": {"name": "get_continuation", "arguments": arguments},
        }
    )
    return result["content"]


def newest_ref(session):
    return next(event.ref for event in reversed(session.events) if event.ref)


def test_a_key_has_one_session_and_another_key_another():
    sessions = made()
    assert sessions.of("a") is sessions.of("a")
    assert sessions.of("a") is not sessions.of("b")
    assert "a" in sessions
    assert len(sessions) == 2


def test_no_conversation_opens_what_another_set_aside():
    sessions = made()
    sessions.of("a").fit(asked("alpha"))
    sessions.of("b").fit(asked("beta"))
    ref = newest_ref(sessions.of("a"))
    assert "call bash" in opened(sessions.of("a"), ref)
    assert "nothing is kept" in opened(sessions.of("b"), ref)


def test_call_ids_are_those_of_the_conversation_that_is_asked():
    sessions = made()
    for name in "abc":
        sessions.of(name).fit(asked(name * 3))
    call_id = next(
        m["tool_call_id"] for m in asked()["messages"] if m["role"] == "tool"
    )
    assert [opened(sessions.of(name), call_id)[:3] for name in "abc"] == [
        "aaa",
        "bbb",
        "ccc",
    ]


def test_a_sub_agent_opens_its_parents_refs_and_nobody_elses():
    sessions = made()
    sessions.of("lead").fit(asked("alpha"))
    ref = newest_ref(sessions.of("lead"))
    child, stranger = (
        sessions.of("lead/reader", parent="lead"),
        sessions.of("other"),
    )
    for session, marker in ((child, "beta"), (stranger, "gamma")):
        session.fit(asked(marker))
    assert "call bash" in opened(child, ref)
    assert "nothing is kept" in opened(stranger, ref)


def test_a_window_that_a_provider_named_is_known_when_a_conversation_comes_back():
    sessions = made(most=1, limits=None)
    view = sessions.of("a", tenant="mine").fit(asked(turns=40))
    said = "This model's maximum context length is 5000 tokens. Your messages resulted in 49253."
    assert view.refused(said).limit_tokens == 5_000
    del view
    sessions.of("b", tenant="mine")
    assert "a" not in sessions
    gc.collect()
    assert (
        sessions.of("a", tenant="mine").fit(asked(turns=40)).sent.limit_tokens
        <= 5_000
    )
    assert (
        sessions.of("c", tenant="mine").fit(asked(turns=40)).sent.limit_tokens
        > 5_000
    )


def test_those_used_last_are_held_and_no_more_than_asked():
    sessions = made(most=2)
    for name in "abac":
        sessions.of(name)
    assert [name in sessions for name in "abc"] == [True, False, True]


def test_what_is_held_is_bounded_by_size_too():
    sessions = made(most_bytes=200_000)
    for n in range(12):
        sessions.of(f"c{n}").fit(asked(f"c{n}"))
    sessions.of("c11")
    assert len(sessions) < 6
    assert sessions.held_bytes <= 200_000
    assert "c11" in sessions


def test_those_used_last_are_held_though_older_ones_have_no_room():
    sessions = made(older_bytes=1)
    for n in range(20):
        sessions.of(f"c{n}").fit(asked(f"c{n}"))
    sessions.of("c19")
    assert [f"c{n}" in sessions for n in range(20)] == [False] * 4 + [
        True
    ] * 16
    room = made(older_bytes=2 * sessions.held_bytes // 15)
    for n in range(20):
        room.of(f"c{n}").fit(asked(f"c{n}"))
    room.of("c19")
    assert 16 < len(room) < 20


def test_a_text_that_many_messages_share_counts_once_and_so_does_what_a_block_holds():
    sessions, text = (
        made(limits=Limits(window_tokens=900_000)),
        "long " * 20_000,
    )
    picture = {
        "type": "image_url",
        "image_url": {"url": "data:image/png;base64," + "A" * 90_000},
    }

    def held(key, *contents):
        before = sessions.held_bytes
        messages = [
            {"role": "user", "content": content} for content in contents
        ]
        sessions.of(key).fit({"model": MODEL, "messages": messages})
        sessions.of(key)
        return sessions.held_bytes - before

    assert 100_000 < held("shared", *[text] * 5) < 150_000
    assert held("own", *(text[n:] for n in range(5))) > 490_000
    assert 90_000 < held("picture", [picture]) < 200_000


def test_what_is_kept_beside_a_session_is_counted_with_it():
    sessions = made(most_bytes=200_000)
    for n in range(3):
        sessions.of(f"c{n}").fit(asked("a", 2))
    sessions.of("c0")
    alone = sessions.held_bytes
    sessions.of("c0").bytes_beside = 90_000
    sessions.of("c1")
    assert sessions.held_bytes == alone + 90_000
    sessions.of("c1").bytes_beside = 100_000
    sessions.of("c2").bytes_beside = 20_000
    sessions.of("c1")
    assert ["c0" in sessions, "c1" in sessions, "c2" in sessions] == [
        False,
        True,
        True,
    ]
    assert 120_000 < sessions.held_bytes < 200_000


def test_sessions_that_work_side_by_side_are_all_counted():
    sessions = made(most_bytes=200_000)
    under_way = [sessions.of(f"c{n}") for n in range(12)]
    for n, session in enumerate(under_way):
        session.fit(asked(f"c{n}"))
    sessions.of("c11")
    assert len(sessions) < 6
    assert 0 < sessions.held_bytes <= 200_000


def test_a_session_that_grows_is_measured_again():
    sessions = made()
    sizes = []
    for turns in (2, 6, 12):
        sessions.of("a").fit(asked("a", turns))
        sessions.of("a")
        sizes.append(sessions.held_bytes)
    assert sizes[0] < sizes[1] < sizes[2]
    sessions.drop("a")
    assert sessions.held_bytes == 0


def test_one_that_was_let_go_is_made_anew_and_shows_the_same():
    sessions = made(most=1)
    view = sessions.of("a").fit(asked("alpha"))
    sessions.of("b").fit(asked("beta"))
    del view
    gc.collect()
    again = sessions.of("a")
    assert again.events == type(again.events)()
    assert again.fit(asked("alpha")) == made().of("a").fit(asked("alpha"))


def test_one_that_is_in_use_is_found_again_however_many_came_between():
    sessions = made(most=1)
    session = sessions.of("a")
    for n in range(10):
        sessions.of(f"c{n}")
    assert sessions.of("a") is session


def test_a_session_is_made_from_the_state_its_host_carries():
    first = made()
    view = first.of("a").fit(asked())
    first.of("a").observe(
        {"usage": {"prompt_tokens": 9_000, "completion_tokens": 1}}
    )
    view, state = first.of("a").fit(asked()), first.of("a").state
    second = made()
    assert second.of("a", state=state).fit(asked()) == view


def test_threads_get_one_session_of_a_key():
    sessions, found = made(most=3), []
    start = threading.Barrier(8)

    def work(n):
        start.wait()
        for turn in range(40):
            found.append((turn % 4, sessions.of(f"c{turn % 4}")))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for name in range(4):
        assert len({id(session) for key, session in found if key == name}) == 1
    assert len(sessions) <= 3


def test_closing_one_session_leaves_the_store_open():
    with made() as sessions:
        with sessions.of("a") as session:
            session.fit(asked("alpha"))
        sessions.of("b").fit(asked("beta"))


def test_a_budget_is_one_for_all_or_one_for_each():
    shared = Budget(tokens=1_000_000)
    sessions = made(budget=shared)
    assert sessions.of("a").budget is sessions.of("b").budget is shared
    each = made(budget=lambda key: Budget(tokens=1_000_000))
    assert each.of("a").budget is not each.of("b").budget


@pytest.mark.parametrize(
    "setting",
    [
        {"most": 0},
        {"most_bytes": 0},
        {"older_bytes": 0},
        {"policy": "no such"},
    ],
)
def test_a_setting_that_cannot_be_meant_is_told_at_once(setting):
    with pytest.raises(ConfigError):
        made(**setting)


@pytest.mark.parametrize("store", [None, Threaded(MemoryStore())])
def test_the_twin_for_an_event_loop(store):
    async def talk():
        settings = {"format": "openai-chat", "limits": SMALL, "recall": True}
        async with AsyncSessions(
            MODEL, store=store, most=1, **settings
        ) as sessions:
            view = await sessions.of("a").fit(asked("alpha"))
            await sessions.of("a").close()
            await sessions.of("b").fit(asked("beta"))
            assert len(sessions) == 1
            assert await sessions.of("a").fit(asked("alpha")) == view

    asyncio.run(talk())


class Door(Closing):
    is_open = True

    def close(self):
        self.is_open = False


class AsyncDoor(AsyncClosing):
    is_open = True

    async def close(self):
        self.is_open = False


def test_a_block_that_fails_closes_what_it_opened_and_raises():
    door, other = Door(), AsyncDoor()

    async def fails():
        async with other as opened:
            assert opened is other
            raise KeyError("in it")

    with pytest.raises(KeyError), door:
        raise KeyError("in it")
    with pytest.raises(KeyError):
        asyncio.run(fails())
    assert (door.is_open, other.is_open) == (False, False)
