"""Requests whose history the provider holds: what stands in them is cut, the rest passes."""

import pytest

from ullage import FormatError, Limits, OverLimitError, Session

READ = {
    "type": "function",
    "name": "read",
    "parameters": {"type": "object", "properties": {}},
}
PAGE = "a line of the page\n" * 10_000
BEFORE = [("previous_response_id", "resp_1"), ("conversation", "conv_1")]


def follow_up(output, key="previous_response_id", value="resp_1"):
    item = {
        "type": "function_call_output",
        "call_id": "call_9",
        "output": output,
    }
    return {"model": "gpt-5.4", key: value, "input": [item], "tools": [READ]}


def kinds(session):
    return [event.kind for event in session.events]


@pytest.mark.parametrize(("key", "value"), BEFORE)
def test_a_new_output_is_cut_and_opens_in_later_requests(key, value):
    session = Session("gpt-5.4")
    view = session.fit(follow_up(PAGE, key, value))
    assert view[key] == value
    assert len(str(view["input"])) < 10_000
    assert kinds(session) == ["truncated", "passed_on"]
    (ref,) = (event.ref for event in session.events if event.ref)
    later = session.fit(follow_up("done", key, "the next"))
    assert later["tools"] == view["tools"]
    arguments = f'{{"tool_call_id": "{ref}", "offset": 8000}}'
    call = {
        "type": "function_call",
        "call_id": "c",
        "name": "get_continuation",
    }
    assert (
        PAGE[8_000:8_400]
        in later.recall({**call, "arguments": arguments})["output"]
    )


@pytest.mark.parametrize("policy", ["default", "three_layer", "multi_stage"])
def test_nothing_is_repaired_and_nothing_decided_without_the_history(policy):
    """An answer has its call where the history is; the view is the caller's own request."""
    session = Session("gpt-5.4", policy=policy, repair=True, recall=False)
    asked = follow_up("done")
    assert session.fit(asked) == asked
    assert kinds(session) == ["passed_on"]
    (event,) = session.events
    assert event.where == "previous_response_id"
    assert "need the whole history" in event.why
    assert session.compact(asked) is False


def test_what_alone_is_over_the_limit_is_refused():
    session = Session("gpt-5.4", limits=Limits(window_tokens=2_000))
    said = [{"role": "user", "content": "word " * 9_000}]
    with pytest.raises(OverLimitError):
        session.fit(
            {"model": "gpt-5.4", "previous_response_id": "r", "input": said}
        )


@pytest.mark.parametrize(
    "config", [{"cached_content": "c/1"}, {"cachedContent": "c/1"}]
)
def test_beside_cached_content_gemini_takes_no_tools(config):
    """The cache holds the tools; the API refuses others in the request."""
    session = Session("gemini-2.5-pro")
    asked = {
        "model": "gemini-2.5-pro",
        "contents": [{"role": "user", "parts": [{"text": "Go."}]}],
    }
    assert session.fit({**asked, "config": config}) == {
        **asked,
        "config": config,
    }
    assert kinds(session) == ["passed_on"]


def test_a_wire_without_such_a_field_refuses_it():
    asked = {
        "model": "gpt-4.1",
        "messages": [{"role": "user", "content": "Go."}],
    }
    with pytest.raises(FormatError, match="held by the provider"):
        Session("gpt-4.1").fit({**asked, "previous_response_id": "r"})
