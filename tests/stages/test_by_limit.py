"""Which of two stages decides goes by the limit of the window, and by nothing else."""

from functools import partial

import pytest

from tests import histories
from tests.histories import Call, Turn
from ullage import Limits, Session
from ullage.policy import Policy
from ullage.policy.stages.by_limit import by_limit


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
