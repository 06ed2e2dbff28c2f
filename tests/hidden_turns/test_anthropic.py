"""What Anthropic Messages alone has."""

from tests.hidden_turns.talk import RECALL, Reply, knitted, owns, start
from ullage.doors.hidden_turns import Rounds, StreamedRounds


def test_pings_and_errors_pass():
    talk = start(("anthropic", True))
    streamed = StreamedRounds(Rounds(talk.wire, knitted(talk), owns))
    for event in (
        {"type": "ping"},
        {"type": "error", "error": {"type": "overloaded_error"}},
    ):
        assert streamed.feed(event) == (event,)


def test_a_cache_marker_stays_where_the_client_put_it():
    talk = start(("anthropic", False))
    talk.model(Reply("First.", [RECALL]), Reply("Then."))
    marker = {"type": "ephemeral"}
    talk.history[-1]["content"][-1] = {
        **talk.history[-1]["content"][-1],
        "cache_control": marker,
    }
    talk.user("And?")
    found = knitted(talk).request["messages"]
    assert found[-2]["content"][-1]["cache_control"] == marker
    assert str(found).count("cache_control") == 1


def test_another_model_is_sent_no_thinking_that_the_client_left_out():
    talk = start(("anthropic", False), habits=["drops thinking"])
    talk.model(
        Reply("", [RECALL], thought="One."), Reply("Then.", thought="Two.")
    )
    assert "thinking" in str(knitted(talk).request["messages"])
    talk.fields["model"] = "claude-haiku-4-5"
    found = knitted(talk).request["messages"]
    assert "tool_result" in str(found)
    assert "thinking" not in str(found)
