"""Recall inside: the model's calls to the recall tools are answered, and the client sees none.

    restored = run(restore_hidden_turns(body, wire, tenant), store, tenant)
    rounds = Rounds(wire, restored, owns=view.owns)          # of the view that was fitted
    request = restored.request
    while True:
        view = session.fit(request)
        step = rounds.take(send(view))    # PrivateCalls, NextRound or FinishedReply
        if isinstance(step, PrivateCalls):
            step = rounds.answer([view.recall(call) for call in step.calls])
        if isinstance(step, FinishedReply):
            break
        request = step.request
    commit(step.records); give(step.reply)

A *round* is one request of ours and its reply. A call is *private* if ``owns`` says so. A reply
with private calls alone leads to another round; in one that has calls of the client's too, the
results of ours are deferred to the client's next request, where `restore_hidden_turns` puts them.

Streamed, `StreamedRounds` takes the events of every round in turn, and gives those for the client:

    streamed = StreamedRounds(Rounds(...))
    for event in upstream: give(streamed.feed(event))            # as they come
    step = streamed.end()                                        # as of `Rounds.take`
    step = streamed.answer(results)                              # as of `Rounds.answer`
    commit(step.records), and only then: give(step.events)

Pure: no I/O, no clock. Replies, events and messages are JSON values and never changed; an event
that needs no change is given on as the same object.
"""

from __future__ import annotations

from ullage.doors.hidden_turns.restore import (
    ParsedHistory,
    RestoredRequest,
    is_thread,
    restore_hidden_turns,
    takes_rounds,
)
from ullage.doors.hidden_turns.rounds import (
    FinishedReply,
    NextRound,
    PrivateCalls,
    Rounds,
)
from ullage.doors.hidden_turns.streamed import StreamedRounds

__all__ = [
    "FinishedReply",
    "NextRound",
    "ParsedHistory",
    "PrivateCalls",
    "RestoredRequest",
    "Rounds",
    "StreamedRounds",
    "is_thread",
    "restore_hidden_turns",
    "takes_rounds",
]
