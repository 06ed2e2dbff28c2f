"""The tracing of a turn sees where a request goes, and where it climbs."""

from types import SimpleNamespace

import pytest

from lab import trace_turn
from lab.trace_turn import Climb, Trace, traced_session


def test_a_walk_begins_with_the_door_and_ends_with_the_rendering():
    trace = traced_session(3)
    (walk, *_) = trace.rooms
    rooms = [room for room in walk if room.startswith("turn.")]
    assert rooms[:2] == ["turn.state", "turn.request"]
    assert rooms[-1] == "turn.rendering"
    assert sum(trace.rooms.values()) == 3
    assert trace.calls > 100


class Code(SimpleNamespace):
    """The code of a function in a room."""

    def __hash__(self):
        return hash(self.co_filename)


@pytest.fixture
def files_are_rooms(monkeypatch):
    monkeypatch.setattr(trace_turn, "_room_at", lambda filename: filename)


def climbs(*calls):
    """The climbs of calls, each told by the rooms of its stack, the caller first."""
    trace = Trace()
    for rooms in calls:
        frame = None
        for room in rooms:
            code = Code(
                co_filename=room, co_name="f", co_qualname="f", co_flags=0
            )
            frame = SimpleNamespace(f_code=code, f_back=frame)
        trace._see(frame, "call", None)
    return set(trace.climbs)


@pytest.mark.usefixtures("files_are_rooms")
def test_a_call_into_a_room_above_is_a_climb_also_through_foreign_code():
    assert climbs(("history", "stages")) == {Climb("a", "history", "stages")}
    assert climbs(("history", "", "stages")) == {
        Climb("a", "history", "stages")
    }
    assert climbs(("stages", "history")) == set()


@pytest.mark.usefixtures("files_are_rooms")
def test_to_come_back_into_a_room_that_was_left_is_a_climb():
    turn = "turn.turn"
    there = (
        (turn, "wires"),
        (turn, "wires"),
        (turn, "values"),
        (turn, "wires"),
        (turn, "history"),
    )
    assert climbs(*there) == set()
    assert climbs(*there, (turn, "wires")) == {Climb("b", "history", "wires")}
    elsewhere = (*there, (turn, "tokens"))
    assert climbs(*elsewhere, ("stages", "history")) == set(), (
        "only who directs comes back"
    )


CLIMBS = 3
"""The most that forty turns may make: three today. What is read later is frozen at the end."""


def test_a_request_climbs_back_no_more_often_than_it_did():
    traced_session(3)
    assert len(traced_session(40).climbs) <= CLIMBS
