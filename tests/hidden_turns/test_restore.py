"""Hidden turns go back into a history, or the history stays as the client has it."""

import json

import pytest

from tests.hidden_turns.talk import HABITS, OWN, RECALL, Reply, goes_on, start
from ullage import MemoryStore
from ullage.doors.hidden_turns import restore_hidden_turns
from ullage.session.drivers import run
from ullage.stores import Bounds


@pytest.mark.parametrize("habit", HABITS)
def test_a_client_may_write_the_reply_anew(mode, habit):
    talk = start(mode, habits=[habit])
    talk.model(
        Reply("First. ", [RECALL], thought="One."),
        Reply(" Then.\n", [RECALL, OWN], thought="Two."),
    )
    talk.model(Reply("Once more.", [RECALL], thought="Three."), "Done.")
    goes_on(talk)


def test_another_worker_on_the_same_store_knits_the_same(mode):
    talk = start(mode)
    talk.model(Reply("First.", [RECALL]), Reply("Then.", [RECALL, OWN]))
    request = talk.request()
    found = [
        run(restore_hidden_turns(request, talk.wire, "t"), talk.store, "t")
        for _ in range(2)
    ]
    assert found[0].request == found[1].request != request
    assert (
        run(
            restore_hidden_turns(request, talk.wire, "another"),
            talk.store,
            "another",
        ).request
        is request
    )


def test_a_lost_splice_costs_the_prefix_and_nothing_else(mode):
    talk = start(mode)
    talk.model(
        Reply("First.", [RECALL], thought="One."),
        Reply("Then.", [RECALL, OWN], thought="Two."),
    )
    talk.store = MarksAlone(talk.store)
    talk.forgets()
    talk.model("Done.")
    goes_on(talk)


class MarksAlone:
    """A store that has lost every splice, but not what marks thinking as theirs."""

    def __init__(self, store):
        self.store = store

    def find(self, tenant, keys):
        return tuple(
            each
            for each in self.store.find(tenant, keys)
            if each.data == b"{}"
        )

    def commit(self, *given):
        return self.store.commit(*given)


def test_an_edited_reply_is_sent_as_the_client_has_it(mode):
    talk = start(mode)
    talk.model(Reply("Let me look.", [RECALL]), Reply("Line 5 failed."))
    said = json.dumps(talk.history).replace("Line 5", "Line 6")
    talk.history = json.loads(said)
    request = talk.request()
    assert (
        run(
            restore_hidden_turns(request, talk.wire, "t"), talk.store, "t"
        ).request
        == request
    )


def test_white_space_within_a_text_is_not_ours_to_put_back(mode):
    talk = start(mode)
    talk.model(Reply("Look:\n    a = 1", [RECALL]), Reply("Done."))
    talk.history = json.loads(
        json.dumps(talk.history).replace(r"\n    a", r"\na")
    )
    request = talk.request()
    assert (
        run(
            restore_hidden_turns(request, talk.wire, "t"), talk.store, "t"
        ).request
        == request
    )


def test_a_splice_stays_as_long_as_it_is_looked_up(mode):
    day_s = 86_400
    clock = [0.0]
    talk = start(mode, store=MemoryStore(clock=lambda: clock[0]))
    talk.model(Reply("First.", [RECALL]), Reply("Then."))
    for _ in range(5):
        clock[0] += day_s
        talk.user("And?")
        talk.model("Yes.")
        talk.store.collect(None, Bounds(older_than_s=1.5 * day_s))
    clock[0] += 2 * day_s
    talk.store.collect(None, Bounds(older_than_s=1.5 * day_s))
    request = talk.request()
    assert (
        run(
            restore_hidden_turns(request, talk.wire, "t"), talk.store, "t"
        ).request
        is request
    )


def test_a_conversation_without_splices_is_not_looked_through(mode):
    talk = start(mode)
    talk.model("Nothing.")
    talk.user("And then?")
    request = talk.request()
    steps = restore_hidden_turns(request, talk.wire, "t")
    assert len(next(steps).keys) == 1
    with pytest.raises(StopIteration) as end:
        steps.send(())
    assert end.value.value.request is request
