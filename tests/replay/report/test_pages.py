"""What the pages say above the window."""

from typing import NamedTuple

from tests.replay.test_report import PROFILE, picture
from tests.replay.test_run import small_run
from ullage.core.values.limits import Limits
from ullage.session.session import Session
from ullage.stores import MemoryStore
from ullage.tools.replay.cost.prices import OWN
from ullage.tools.replay.report.pages import page_of_replays, page_of_session
from ullage.tools.replay.stored import from_store


class Replays(NamedTuple):
    pictures: list
    rows: list
    profiles: list


def test_a_replay_says_how_many_runs_it_draws():
    drawn, rows = picture(small_run("openai-chat", 3))
    assert "1 recorded run put through ullage" in page_of_replays(
        Replays([drawn], rows, [PROFILE])
    )
    none = page_of_replays(
        Replays([], rows, [PROFILE]), command="ullage replay runs.jsonl"
    )
    assert "0 of 1 runs are drawn" in none
    assert "ullage replay runs.jsonl" in none


def test_a_session_says_what_it_did():
    run, store = small_run("openai-chat", 12), MemoryStore()
    limits = Limits(window_tokens=16_000)
    session = Session(
        "gpt-4.1",
        store=store,
        limits=limits,
        format="openai-chat",
        recall=True,
    )
    session.fit({**run.request, "messages": run.messages})
    assert "pruned" in {event.kind for event in session.events}
    found = from_store(run, store, profiles=[OWN], window_tokens=16_000)
    page = page_of_session("mine", found, [OWN])
    assert f"One session under {found.policy}: 12 requests" in page
    assert "A session's context window" in page
