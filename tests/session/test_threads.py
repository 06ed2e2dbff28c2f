"""Several threads: on one session, and each with its own session on one file."""

from concurrent.futures import ThreadPoolExecutor

from tests import histories
from ullage import Limits, MemoryStore, Session

LIMITS = Limits(window_tokens=6_000)
TURNS = [
    histories.Turn(
        calls=(histories.Call("bash", f"{n}.py", f"line {n}\n" * 500),)
    )
    for n in range(12)
]


def new_session(**more):
    return Session(
        "gpt-4.1", limits=LIMITS, format="openai-chat", recall=True, **more
    )


def requests():
    messages = histories.wire("openai-chat", TURNS)
    lengths = [
        at for at, m in enumerate(messages) if at and m["role"] == "assistant"
    ]
    return [
        histories.request("openai-chat", messages[:length])
        for length in (*lengths, len(messages))
    ]


def played(session):
    return [session.fit(request) for request in requests()]


def test_threads_on_one_session_get_the_views_of_one_thread():
    alone, shared = played(new_session()), new_session()
    assert shared.fit(requests()[-1]) == alone[-1]
    with ThreadPoolExecutor(4) as pool:
        views = list(pool.map(shared.fit, requests() * 3))
        results = pool.map(shared.recall, [call_for(shared)] * 20)
    assert views == alone * 3
    assert len({result["content"] for result in results}) == 1


def call_for(session):
    ref = next(event.ref for event in session.events if event.ref)
    body = {
        "name": "get_continuation",
        "arguments": f'{{"tool_call_id": "{ref}"}}',
    }
    return {"id": "call_read", "type": "function", "function": body}


def test_sessions_on_one_file_arrive_at_the_same_views(tmp_path):
    expected = played(new_session(store=MemoryStore()))

    def worker(_):
        with new_session(store=tmp_path / "store.db") as session:
            return played(session)

    with ThreadPoolExecutor(4) as pool:
        for views in pool.map(worker, range(4)):
            assert views == expected
