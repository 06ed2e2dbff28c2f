"""Recall inside: the model's calls to the recall tools are answered, and the client sees none.

    restored = run(knit(body, wire, tenant), store, tenant)       # hidden turns go back in
    rounds = Rounds(wire, restored, owns=view.owns)               # of the view that was fitted
    request = restored.request
    while True:
        view = session.fit(request)
        step = rounds.take(send(view))                           # Calls, Again or Done
        if isinstance(step, Calls):
            step = rounds.answer([view.recall(call) for call in step.calls])   # Again or Done
        if isinstance(step, Done):
            break
        request = step.request
    commit(step.records); give(step.reply)

A *round* is one request of ours and its reply. A call is *private* if ``owns`` says so. A reply
with private calls alone leads to another round; in one that has calls of the client's too, what
answers ours waits for the client's next request, which `restore_hidden_turns` puts together again.

Streamed, `StreamedRounds` takes the events of every round in turn, and gives those for the client:

    streamed = Streamed(Rounds(...))
    for event in upstream: give(streamed.feed(event))            # as they come
    step = streamed.end()                                        # as of `Rounds.take`
    step = streamed.answer(results)                              # as of `Rounds.answer`
    commit(done.records), and only then: give(done.events)

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
