"""What the history at hand gives back by itself."""

from tests import histories
from ullage import Limits, Session
from ullage.session.recall.history import find_in_history

CALL = histories.Call("bash", "a.py", "a line of output\n" * 400)


def test_a_ref_opens_from_the_history_and_the_index_of_what_was_compacted():
    messages = histories.wire(
        "openai-chat", [histories.Turn(calls=(CALL,))] * 3
    )
    session = Session(
        "gpt-4.1",
        policy=histories.CUTS_ALWAYS,
        limits=Limits(window_tokens=100_000),
    )
    request = histories.request("openai-chat", messages)
    assert session.compact(request)
    session.fit(request)
    window = session.window
    assert (
        find_in_history(window, "call_0_0", window.size, thorough=False).text
        == CALL.output
    )
    ref = window.summaries[-1].edit.ref
    index = find_in_history(window, ref, window.size, thorough=True)
    assert index.text.startswith("Index of messages 2 to ")
    assert (
        find_in_history(
            window, window.summaries[-1].edit.ref, window.size, thorough=False
        )
        is None
    )
    assert (
        find_in_history(window, "0" * 16, window.size, thorough=True) is None
    )
