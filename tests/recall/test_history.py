"""What the history at hand gives back by itself."""

from tests import histories
from ullage import Limits, Session
from ullage.session.recall import history
from ullage.session.recall.history import HistoryCorpus, find_in_history

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


def test_a_second_search_of_a_view_does_not_go_through_its_texts_again(
    monkeypatch,
):
    read = []
    monkeypatch.setattr(
        history,
        "bare",
        lambda line: read.append(line) or line,
    )
    call = histories.Call("bash", "a.py", "the tide of a second search\n" * 9)
    turns = [histories.Turn(calls=(call,))] * 3
    messages = histories.wire("openai-chat", turns)
    session = Session("gpt-4.1", limits=Limits(window_tokens=100_000))

    def lines_in_view(messages):
        session.fit(histories.request("openai-chat", messages))
        read.clear()
        return HistoryCorpus(session.window).visible_lines

    lines = lines_in_view(messages)
    assert "the tide of a second search" in lines
    assert read
    assert lines_in_view(messages) == lines
    assert not read, "it is the same view"
    more = [*messages, {"role": "user", "content": "And the ebb?"}]
    assert lines_in_view(more) == lines | {"And the ebb?"}
    texts = HistoryCorpus(session.window).texts
    assert texts[-1] == "And the ebb?"
    assert len(texts) == 1 + len(
        HistoryCorpus(session.window, 0, len(messages)).texts
    )
