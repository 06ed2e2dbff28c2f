"""Which of two stages decides goes by the limit of the window, and by nothing else."""

from functools import partial

import pytest

from tests import histories
from tests.histories import Call, Turn
from ullage import Limits, Session
from ullage.core.contract.policy import name_of
from ullage.policy import DEFAULT, Policy
from ullage.policy.stages.by_limit import by_limit
from ullage.policy.stages.emergency import emergency
from ullage.policy.stages.truncate import truncate


def asked(window, /, *, names, name):
    names.append((name, window.limit_tokens))
    return ()


@pytest.mark.parametrize(
    ("window_tokens", "decides"),
    [(8_000, "otherwise"), (16_000, "within"), (64_000, "otherwise")],
)
def test_the_limit_says_who_decides(window_tokens, decides):
    names = []
    guard = partial(
        by_limit,
        start_tokens=10_000,
        stop_tokens=20_000,
        within=lambda window: asked(window, names=names, name="within"),
        otherwise=lambda window: asked(window, names=names, name="otherwise"),
    )
    session = Session(
        "gpt-4.1",
        policy=Policy(name="mine-1", under_pressure=(guard,)),
        limits=Limits(window_tokens=window_tokens),
    )
    messages = histories.wire(
        "openai-chat", [Turn(calls=(Call("bash", "a", "done"),))]
    )
    session.fit(histories.request("openai-chat", messages))
    assert {name for name, _ in names} == {decides}


def chosen(within, otherwise):
    return partial(
        by_limit,
        start_tokens=1,
        stop_tokens=2,
        within=within,
        otherwise=otherwise,
    )


def test_what_it_proposes_is_recorded_as_the_work_of_the_stages_it_chooses_between():
    assert name_of(DEFAULT.guard) == "emergency"
    assert name_of(chosen(partial(emergency, target=0.5), truncate)) == (
        "emergency or truncate"
    )
    nested = chosen(chosen(truncate, truncate), truncate)
    assert name_of(nested) == "truncate"


def test_the_batches_of_the_default_guard_have_its_name():
    turns = [
        Turn(calls=(Call("bash", f"a{n}", f"{n} of many lines\n" * 900),))
        for n in range(12)
    ]
    session = Session("gpt-4.1", limits=Limits(window_tokens=9_000))
    session.fit(
        histories.request("openai-chat", histories.wire("openai-chat", turns))
    )
    entries = session.state.ledger.entries.values()
    stages = {batch.stage for entry in entries for batch in entry.batches}
    assert "emergency" in stages
    assert "by_limit" not in stages
