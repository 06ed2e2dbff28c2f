"""The laws of a cut: what breaks one is mended or left out, whoever proposed it."""

import inspect
import re
from typing import get_args

import pytest
from msgspec.structs import replace

from tests import histories
from tests.histories import Call, Turn
from ullage import (
    Limits,
    MemoryStore,
    Output,
    Policy,
    ProposedEdit,
    Replace,
    Session,
    StageError,
    problems,
)
from ullage.core.contract.ranges import set_aside
from ullage.core.errors import RefNotFound
from ullage.core.history.canon import ref_of
from ullage.core.history.ledger import Ledger
from ullage.core.history.shown import ShownHistory
from ullage.core.turn import cuts, leaves, spans
from ullage.core.turn.checks import check
from ullage.core.values.edits import Address, Batch, Drop, ReplaceSpan
from ullage.core.values.messages import Text, ToolCall

OUTPUT = "a line of the log\n" * 40
TURNS = [
    Turn(calls=(Call("bash", f"{n}.py", f"{n}\n{OUTPUT}"),)) for n in range(8)
]
WIRES = pytest.mark.parametrize("format", sorted(histories.MODEL))


def once(propose, size=17):
    """A stage that proposes cuts at one boundary, as long as they have not been made."""

    def proposing(window, /):
        is_shown = window.summaries or any(
            window.shown(at) for at in range(window.size)
        )
        return () if window.size < size or is_shown else propose(window)

    return proposing


def fitted(
    propose, format="anthropic", *, size=17, turns=TURNS, store=None, **more
):
    """A session with such a stage, and its view of a history."""
    policy = Policy(
        name="trial-1", under_pressure=(once(propose, size),), **more
    )
    limits = Limits(window_tokens=200_000)
    model = histories.MODEL[format]
    options = {
        "format": format,
        "recall": True,
        "store": store or MemoryStore(),
    }
    session = Session(model, policy=policy, limits=limits, **options)
    request = histories.request(format, histories.wire(format, turns))
    view = session.fit(request)
    assert problems(dict(view)) == []
    return session, view


def summary(window, start, stop, text="what was done", outputs=()):
    chain = window.transcript.chain
    ref = ref_of(text)
    edit = ReplaceSpan(chain[start], chain[stop], text, ref, "a trial")
    return ProposedEdit(edit, outputs or (Output(ref, text),))


def results(window):
    return list(window.results(0, window.size))


def replaced(window, spot, text="gone", outputs=()):
    output = window.transcript.output(spot)
    edit = Replace(
        window.transcript.address(spot), output.ref, text, "pruned", "a trial"
    )
    return ProposedEdit(edit, tuple(outputs))


def told(session, kind):
    return [
        f"{event.where}: {event.why}"
        for event in session.events
        if event.kind == kind
    ]


def ranges(session):
    return [(placed.start, placed.stop) for placed in session.window.summaries]


# ── seams ────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("start", "stop", "stands_for"),
    [
        (1, 5, (1, 5)),  # it parts nothing
        (1, 4, (1, 5)),  # a call from its result
        (2, 5, (1, 5)),  # a result from its call
        (
            3,
            16,
            (3, 15),
        ),  # the newest call from a result that the model has not seen yet
    ],
)
def test_a_summary_stands_for_whole_steps(start, stop, stands_for):
    session, view = fitted(lambda window: [summary(window, start, stop)])
    assert ranges(session) == [stands_for]
    assert len(view["messages"]) == 17 - (stands_for[1] - stands_for[0]) + 1
    moved = [
        text for text in told(session, "mended") if "can be parted" in text
    ]
    assert len(moved) == (stands_for != (start, stop))


@WIRES
def test_a_summary_that_parts_a_call_from_its_result_is_legal_on_every_wire(
    format,
):
    for start in range(1, 6):
        for stop in range(start + 1, 9):
            session, _ = fitted(
                lambda w, a=start, b=stop: [summary(w, a, b)], format
            )
            assert len(session.window.summaries) == 1


@pytest.mark.parametrize(
    ("start", "stop"), [(1, 3), (1, 4), (5, 6), (6, 7), (1, 7)]
)
def test_no_summary_is_widened_over_what_the_provider_compacted(start, stop):
    sealed = {"type": "compaction", "id": "cmp_1", "encrypted_content": "c2Vh"}
    said = histories.wire(
        "openai-responses", [Turn(user="Do it."), *TURNS[:3]]
    )
    items = [*said[:3], sealed, *said[3:]]
    policy = Policy(
        name="trial-1",
        under_pressure=(
            once(lambda w: [summary(w, start, stop)], len(items)),
        ),
    )
    limits = Limits(window_tokens=200_000)
    options = {"format": "openai-responses", "recall": True}
    session = Session("gpt-5.6", policy=policy, limits=limits, **options)
    view = session.fit({"model": "gpt-5.6", "input": items})
    assert problems(dict(view)) == []
    assert any(item is sealed for item in view["input"])


def test_a_summary_covers_the_one_that_it_would_cut_in_two():
    def two(window, /):
        return [
            summary(window, 1, 5, "first"),
            summary(window, 3, 9, "second"),
        ]

    session, _ = fitted(two)
    assert ranges(session) == [(1, 9)]
    assert session.window.summaries[0].edit.text.startswith("second")


def test_what_names_no_range_is_left_out_and_told():
    session, view = fitted(
        lambda window: [summary(window, 5, 5), summary(window, 9, 3)]
    )
    assert ranges(session) == []
    assert len(view["messages"]) == 17
    (declined,) = told(session, "declined")
    assert "names no range of the 17 messages" in declined
    assert "window.transcript.chain" in declined


def test_a_summary_that_keeps_half_a_step_keeps_none_of_it():
    def keeping(window, /):
        cut = summary(window, 1, 7)
        return [
            ProposedEdit(
                replace(cut.edit, keeps=(window.transcript.chain[4],)),
                cut.outputs,
            )
        ]

    session, view = fitted(keeping)
    assert session.window.summaries[0].edit.keeps == ()
    assert len(view["messages"]) == 12


# ── kept, ref, named ─────────────────────────────────────────────────────────────────────


@WIRES
def test_what_a_stage_forgets_to_keep_is_kept(format):
    session, _ = fitted(
        lambda window: [replaced(window, spot) for spot in results(window)],
        format,
    )
    window = session.window
    assert len(results(window)) >= 8
    for spot in results(window):
        edit = window.edit_at(spot)
        assert edit.ref in edit.text
        assert session.store.get("", edit.ref) == window.transcript.output(
            spot
        )


def test_the_ref_of_a_summary_opens_an_index_of_all_that_it_stands_for():
    session, view = fitted(lambda window: [summary(window, 1, 7)])
    edit, transcript = (
        session.window.summaries[0].edit,
        session.window.transcript,
    )
    index = session.store.get("", edit.ref).text
    assert edit.text.startswith(
        "what was done\n\n[ullage: messages 2 to 7 in full: "
    )
    assert edit.ref in view["messages"][1]["content"][0]["text"]
    for at in (2, 4, 6):
        (output,) = transcript.outputs(at, 0)
        assert output.ref in index
        assert session.store.get("", output.ref) == output


def test_nothing_is_kept_under_the_ref_of_another_content():
    real = ref_of("the real one")

    def forging(window, /):
        spot = results(window)[0]
        own = window.transcript.output(spot)
        return [
            replaced(
                window,
                spot,
                outputs=[Output(own.ref, "mine"), Output(real, "forged")],
            )
        ]

    session, _ = fitted(forging)
    spot = results(session.window)[0]
    output = session.window.transcript.output(spot)
    assert session.store.get("", output.ref) == output
    with pytest.raises(RefNotFound):
        session.store.get("", real)


def test_a_blank_text_becomes_a_notice():
    session, _ = fitted(lambda window: [replaced(window, (0, 0, 0), " \n")])
    assert session.window.edit_at((0, 0, 0)).text.startswith(
        "[ullage: 28 characters set aside."
    )


def test_arguments_name_their_ref_in_an_object():
    def calls(window, /):
        return [replaced(window, (1, 0, 0), '{"path": "…"}')]

    _, view = fitted(calls)
    (block,) = view["messages"][1]["content"]
    assert block["input"]["path"] == "…"
    assert "set aside" in block["input"]["_ullage"]


def test_a_lawful_cut_stays_the_very_same():
    def lawful_cuts(window, /):
        spot = results(window)[0]
        output = window.transcript.output(spot)
        cut = replaced(window, spot, f"gone, ref={output.ref}", [output])
        cuts = [cut, ProposedEdit(lawful(window), set_aside(window, 1, 5))]
        checked = check(window, "mine", cuts)
        assert checked.cuts == cuts
        assert checked.mends == checked.errors == []
        return cuts

    session, _ = fitted(lawful_cuts)
    assert told(session, "mended") == told(session, "declined") == []


# ── what is refused ──────────────────────────────────────────────────────────────────────


def refused(session_and_view):
    session, _ = session_and_view
    assert all(
        not session.window.shown(at) for at in range(session.window.size)
    )
    (declined,) = told(session, "declined")
    return declined


def test_what_the_user_answered_stays():
    turns = [
        Turn(
            calls=(
                Call("AskUserQuestion", "which", "the second, please\n" * 9),
            )
        ),
        *TURNS,
    ]
    session = fitted(
        lambda window: [replaced(window, (2, 0, 0))], turns=turns, size=19
    )
    declined = refused(session)
    assert declined == (
        "message 3: stage proposing: the user answered this. Leave it out of the cuts."
    )


def test_signed_arguments_stay():
    turns = [replace(turn, thought=True) for turn in TURNS]

    def calls(window, /):
        parts = window.transcript.messages[1].parts
        number = next(
            at for at, part in enumerate(parts) if isinstance(part, ToolCall)
        )
        return [replaced(window, (1, number, 0), "{}")]

    assert "these arguments are signed" in refused(fitted(calls, turns=turns))


def test_what_stands_beside_the_texts_of_a_block_stays():
    def frames(window, /):
        return [replaced(window, (0, 1, 0), "gone")]

    document = {
        "type": "document",
        "title": "Minutes",
        "source": {"type": "text", "media_type": "text/plain", "data": OUTPUT},
    }
    policy = Policy(name="trial-1", under_pressure=(frames,))
    session = Session(histories.MODEL["anthropic"], policy=policy)
    messages = [{"role": "user", "content": [document]}]
    view = session.fit(histories.request("anthropic", messages))
    reason = "a block keeps what stands beside its texts"
    assert reason in refused((session, view))
    assert not any(
        entry.batches for entry in session.state.ledger.entries.values()
    )


def test_a_place_of_no_history_is_told():
    def nowhere(window, /):
        cut = replaced(window, results(window)[0])
        places = [
            Address("text", "no digest", 0),
            Address("result", "c", 0),
            Address("x", "c", 0),
        ]
        return [
            ProposedEdit(replace(cut.edit, address=place), ())
            for place in places
        ]

    declined = refused(fitted(nowhere))
    assert "so it is in 2 more places" in declined


def test_on_arrival_only_what_is_new_is_cut():
    def early(window, /):
        return [replaced(window, (0, 0, 0))] if window.size == 3 else ()

    policy = Policy(name="early-1", on_arrival=(early,))
    session = Session("", policy=policy, format="anthropic", recall=True)
    messages = histories.wire("anthropic", TURNS)
    for length in (1, 3, 5):
        view = session.fit(histories.request("anthropic", messages[:length]))
    assert view["messages"][0] is messages[0]
    assert told(session, "declined")[0].startswith(
        "message 1: stage early: on arrival nothing "
    )


def test_an_account_that_stands_in_no_result_is_told_where_the_range_was():
    session, view = fitted(lambda window: [summary(window, 1, 5, "")])
    assert ranges(session) == [(1, 5)]
    assert view["messages"][1]["content"][0]["text"].startswith(
        "[ullage: messages 2 to 5 in full"
    )


def account_in_a_result(window):
    """A summary of two steps without a text, and its account behind the result before it."""
    start, stop = 3, 7
    index = set_aside(window, start, stop)[-1]
    chain, spot = (
        window.transcript.chain,
        next(window.transcript.results(start - 1)),
    )
    edit = ReplaceSpan(chain[start], chain[stop], "", index.ref, "a trial")
    whole = window.transcript.output(spot).text
    account = f"{whole}\n\nTwo steps: see {index.ref}"
    return [ProposedEdit(edit, (index,)), replaced(window, spot, account)]


def test_a_result_that_holds_an_account_and_its_own_whole_text_needs_no_notice():
    session, _ = fitted(account_in_a_result)
    assert ranges(session) == [(3, 7)]
    assert not [
        text for text in told(session, "mended") if "did not name" in text
    ]


def test_no_account_stands_in_a_result_of_a_range_that_stays(monkeypatch):
    every = set(range(3, 7))
    monkeypatch.setattr(
        ShownHistory, "staying", lambda self, start, stop: every
    )
    session, view = fitted(account_in_a_result)
    assert ranges(session) == []
    assert "Two steps" not in str(view["messages"])


def test_reasoning_is_left_out_of_an_unbroken_run():
    turns = [replace(turn, thought=True) for turn in TURNS]
    turns[5] = replace(turns[5], user="and now?")

    def middle(window, /):
        chain = window.transcript.chain
        is_done = window.reasoning_dropped or window.size < 17
        return (
            ()
            if is_done
            else [
                ProposedEdit(Drop(chain[5], chain[window.size], "a trial"), ())
            ]
        )

    session, _ = fitted(middle, turns=turns)
    dropped = session.window.reasoning_dropped
    assert dropped == {1, 3, 5, 7, 9}
    assert "unbroken run" in told(session, "mended")[0]


def test_a_strict_policy_raises_with_stage_and_place():
    def shout(window, /):
        return [replaced(window, (1, 0, 0), "no object")]

    with pytest.raises(
        StageError, match=r"^stage proposing, message 2: it shows 9 "
    ) as caught:
        fitted(shout, strict=True)
    assert (caught.value.stage, caught.value.where) == (
        "proposing",
        "message 2",
    )


# ── records ──────────────────────────────────────────────────────────────────────────────


def recorded(edits_of, format="anthropic"):
    """Two workers on a store that holds a record of these edits, and their views."""
    store = MemoryStore()
    session, plain = fitted(lambda window: (), format)
    transcript = session.window.transcript
    key = transcript.decision_key(9)
    batch = Batch(
        "another", "older-1", tuple(edits_of(session.window)), 900, 100
    )
    store.append("", [Ledger().with_batch(key, batch)[1]])
    one, first = fitted(lambda window: (), format, store=store)
    other, second = fitted(lambda window: (), format, store=store)
    assert first == second
    return (one, other), plain, first


def lawful(window):
    outputs = set_aside(window, 1, 5)
    chain = window.transcript.chain
    text = f"done, ref={outputs[-1].ref}"
    return ReplaceSpan(chain[1], chain[5], text, outputs[-1].ref, "a record")


def test_a_record_that_keeps_the_laws_is_shown():
    sessions, _, view = recorded(lambda window: [lawful(window)])
    assert len(view["messages"]) == 14
    assert [told(session, "declined") for session in sessions] == [[], []]


BROKEN = {
    "a call from its result": lambda w: replace(
        lawful(w), upto=w.transcript.chain[4]
    ),
    "a result from its call": lambda w: replace(
        lawful(w), after=w.transcript.chain[2]
    ),
    "no ref": lambda w: replace(lawful(w), text="done"),
    "a blank message": lambda w: replace(lawful(w), retain=" "),
    "half a step kept": lambda w: replace(
        lawful(w), keeps=(w.transcript.chain[3],)
    ),
    "an account nowhere": lambda w: replace(lawful(w), text=""),
    "a blank result": lambda w: replaced(w, results(w)[0], "").edit,
    "no object": lambda w: (
        replaced(
            w, (1, 0, 0), f"ref={w.transcript.output((1, 0, 0)).ref}"
        ).edit
    ),
}


@pytest.mark.parametrize("edit_of", BROKEN.values(), ids=BROKEN)
def test_a_record_that_breaks_a_law_is_passed_over_by_every_worker(edit_of):
    sessions, plain, view = recorded(lambda window: [edit_of(window)])
    assert view["messages"] == plain["messages"]
    for session in sessions:
        (declined,) = told(session, "declined")
        assert declined.startswith(
            "the ledger: 1 of 1 edits that the ledger holds of stage another"
        )
        for turns in (
            9,
            10,
        ):  # it is told of once, and not at every later request
            longer = [*TURNS, *TURNS, *TURNS][:turns]
            session.fit(
                histories.request(
                    "anthropic", histories.wire("anthropic", longer)
                )
            )
        assert len(told(session, "declined")) == 1


def test_a_damaged_place_in_a_record_has_no_effect():
    def damaged(window, /):
        edit = replaced(window, results(window)[0], "gone").edit
        places = (
            Address("text", "zz", -1),
            Address("result", edit.address.id, -1, -1),
        )
        return [replace(edit, address=place) for place in places]

    _, plain, view = recorded(damaged)
    assert view["messages"] == plain["messages"]


def test_untouched_texts_are_the_callers_own():
    messages = histories.wire("anthropic", TURNS)
    policy = Policy(
        name="p", under_pressure=(once(lambda w: [summary(w, 1, 4)]),)
    )
    session = Session("", policy=policy, format="anthropic", recall=True)
    view = session.fit(histories.request("anthropic", messages))
    assert view["messages"][0] is messages[0]
    assert all(
        shown is raw
        for shown, raw in zip(view["messages"][2:], messages[5:], strict=True)
    )
    assert isinstance(session.window.transcript.messages[0].parts[0], Text)


# ── where the laws stand ─────────────────────────────────────────────────────────────────


def test_each_law_stands_at_the_head_of_the_file_that_enforces_it():
    laws = {
        module: set(re.findall(r"^    (\w+) {3,}", module.__doc__, re.M))
        for module in (leaves, spans, cuts)
    }
    assert {law for named in laws.values() for law in named} >= {
        *get_args(cuts.Law)
    }
    for module, named in laws.items():
        mended = set(
            re.findall(r'mend\(\s*"(\w+)"', inspect.getsource(module))
        )
        assert mended <= named | laws[cuts], module.__name__
