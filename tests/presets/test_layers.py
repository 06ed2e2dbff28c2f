"""In what order the layers of a document act: its own before the guard."""

import pytest

from lab.guard import adds_nothing, planted
from ullage import Limits, Session


@pytest.mark.parametrize("policy", ["three_layer", "output_cache"])
def test_the_documents_layers_act_before_the_guard_and_the_summariser_is_asked(
    policy,
):
    """An answer that takes half of the context leaves the limit below the thresholds."""
    messages, _ = planted(seed=3)
    for message in messages:
        if message["role"] == "tool" and policy == "three_layer":
            # its layer 2 leaves 2,000 characters of a result, and its layer 1 of a line
            message["content"] = (message["content"] * 4).replace(" ", "\n")
    limits = Limits(window_tokens=48_000, output_reserve_tokens=23_000)
    asked = []

    def summariser(question):
        asked.append(question)
        return adds_nothing(question)

    session = Session(
        "gpt-4o", policy=policy, limits=limits, summariser=summariser
    )
    for stop in range(1, len(messages) + 1):
        if stop == len(messages) or messages[stop]["role"] == "assistant":
            session.fit({"model": "gpt-4o", "messages": messages[:stop]})
    kinds = [event.kind for event in session.events]
    acted = [
        kind
        for kind in dict.fromkeys(kinds)
        if kind in ("pruned", "compacted", "condensed")
    ]
    assert acted == ["pruned", "compacted"]
    assert asked
