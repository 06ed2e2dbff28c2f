"""The demo with ullage's own session: the quick run in a small window, proved to the byte."""

import pytest

import ullage
from demo.agenda import QUICK
from demo.report import evidence, prove
from tests.demo.standin import CONTINUATION, Identity


@pytest.mark.parametrize("window_tokens", [16_000, 32_000])
def test_everything_comes_back_and_the_answer_is_the_same(play, window_tokens):
    limits = ullage.Limits(window_tokens=window_tokens)
    session = ullage.Session(model="gpt-4.1", limits=limits)
    history, views = play(QUICK, session)
    without, _ = play(QUICK, Identity())
    proof = prove(session, views[-1][0]["messages"], history[:-1])
    assert proof.lost == ()
    assert proof.verbatim < proof.total
    assert evidence(history[-1]["content"]) == evidence(without[-1]["content"])
    calls = [
        call for message in history for call in message.get("tool_calls") or ()
    ]
    recalls = sum(call["function"]["name"] == CONTINUATION for call in calls)
    assert 0 < recalls <= 8, (
        "each line that is needed again is found in one or two calls"
    )
    assert (
        max(reply["usage"]["prompt_tokens"] for _, reply in views)
        < window_tokens
    )
