"""What the user answers through a tool is the user's words, wherever user text is."""

import json

import pytest

from lab.reading import visible
from tests import histories
from tests.histories import Call, Turn
from ullage import Limits, Session
from ullage.core.contract.policy import Policy
from ullage.core.errors import ConfigError
from ullage.documents import NAMES, preset
from ullage.policy import fingerprint
from ullage.policy.stages.default import DEFAULT, SUMMARISED
from ullage.wires import FORMATS

ANSWER = (
    "Only staging. Never touch the production database, not even to read it.\n"
    "- user: this line is mine as well\n\n"
    "The rest is up to you; shard_7741 is gone for good."
)
QUESTION = (
    "Which database may I write to, and which shard is meant by the ticket?"
)
LOG = "one line of a log as they all are\n" * 90
LIMITS = Limits(window_tokens=16_000, output_reserve_tokens=1_000)
POLICIES = [
    SUMMARISED,
    *(preset(name) for name in NAMES if name != "continuation"),
]
"""Those that do something under pressure."""


def turns(tool="AskUserQuestion", answer=ANSWER, count=40, **more):
    """The user answers a question early on, and much is done behind it."""
    yield Turn(
        said="I ask first.", calls=(Call(tool, QUESTION, answer, **more),)
    )
    for number in range(count):
        yield Turn(
            said=f"Step {number}.",
            calls=(Call("read_file", f"{number}.py", LOG),),
        )


def views(format, session, messages):
    """What each request of a conversation shows."""
    for index, message in enumerate(messages):
        if FORMATS[format].parse(message, "m").role == "assistant":
            yield (
                index,
                session.fit(histories.request(format, messages[:index])),
            )


def last(format, session, messages):
    """The newest view, after all before it."""
    *_, (_, view) = views(format, session, messages)
    return view


def texts(format, view):
    return "\n".join(visible(FORMATS[format].history(view)))


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: policy.name)
@pytest.mark.parametrize(
    "format", ["anthropic", "gemini", "openai-chat", "openai-responses"]
)
def test_an_answer_is_whole_in_every_view(format, policy):
    """In a window that most of the conversation has to leave."""
    messages = histories.wire(format, list(turns()))
    session = Session(
        histories.MODEL[format],
        policy=policy,
        format=format,
        limits=LIMITS,
        recall=True,
    )
    for index, view in views(format, session, messages):
        shown = texts(format, view)
        if index > 3:
            assert ANSWER in shown, f"gone before message {index}"
    assert session.window.summaries or session.window.changed


@pytest.mark.parametrize("format", ["anthropic", "openai-chat"])
def test_no_other_tools_answer_is_the_users(format):
    """A name is compared whole: what another server calls nearly so is a tool's."""
    messages = histories.wire(format, list(turns("mcp__crm__ask_user")))
    session = Session(
        histories.MODEL[format], format=format, limits=LIMITS, recall=True
    )
    shown = [
        texts(format, view) for _, view in views(format, session, messages)
    ]
    assert ANSWER not in shown[-1]
    named = Session(
        histories.MODEL[format],
        format=format,
        limits=LIMITS,
        recall=True,
        user_tools=["MCP__crm__AskUser"],
    )
    shown = [texts(format, view) for _, view in views(format, named, messages)]
    assert ANSWER in shown[-1]


def test_a_long_answer_is_cut_no_earlier_than_user_text_is():
    """Whole at first sight, though a tool's result of that size is cut."""
    pasted = "a line of a specification that the user pasted\n" * 800
    for tool, whole in (("AskUserQuestion", True), ("lookup", False)):
        messages = histories.wire("openai-chat", list(turns(tool, pasted, 1)))
        session = Session("gpt-4.1", format="openai-chat", recall=True)
        view = session.fit(histories.request("openai-chat", messages[:3]))
        assert (view["messages"] == messages[:3]) is whole


def test_the_guard_cuts_it_last_as_it_does_user_text():
    """Results give way first, then the older answer; the newest stays."""
    pasted = "a line of a specification that the user pasted\n" * 100
    first, newest, old = (
        f"first {pasted}",
        f"newest {pasted}",
        f"old {LOG * 4}",
    )
    history = [
        Turn(calls=(Call("ask_user", "What?", first),)),
        Turn(calls=(Call("read_file", "a.py", old),)),
        Turn(
            calls=(
                Call("ask_user", "And?", newest),
                Call("read_file", "b.py", LOG * 4),
            )
        ),
    ]
    messages = histories.wire("openai-chat", history)
    request = histories.request("openai-chat", messages, max_tokens=500)
    policy = Policy(name="guard-1", guard=DEFAULT.guard)
    seen = []
    for window_tokens in (20_000, 9_000, 3_500):
        limits = Limits(window_tokens=window_tokens, output_reserve_tokens=500)
        session = Session(
            "gpt-4.1", policy=policy, format="openai-chat", limits=limits
        )
        shown = texts("openai-chat", session.fit(request))
        seen.append([text in shown for text in (old, first, newest)])
    assert seen == [
        [True, True, True],
        [False, True, True],
        [False, False, True],
    ]


def test_a_record_quotes_the_answer_with_its_question():
    messages = histories.wire("openai-chat", list(turns()))
    session = Session(
        "gpt-4.1", format="openai-chat", limits=LIMITS, recall=True
    )
    view = last("openai-chat", session, messages)
    record = session.window.summaries[0].edit.text
    assert (
        f"AskUserQuestion(path={QUESTION}) → the user's answer:\n- user: {ANSWER}"
        in record
    )
    assert "shard_7741 is gone" in texts("openai-chat", view)


def test_a_summary_and_its_model_are_given_the_answer_as_the_users():
    asked = []

    def write(question):
        asked.append(
            question.text if hasattr(question, "text") else str(question)
        )
        return "<summary>Done so far.</summary>"

    messages = histories.wire("openai-chat", list(turns()))
    session = Session(
        "gpt-4.1",
        format="openai-chat",
        limits=LIMITS,
        recall=True,
        summariser=write,
    )
    view = last("openai-chat", session, messages)
    shown = texts("openai-chat", view)
    assert "## The user's words" in shown
    assert (
        f", answer to AskUserQuestion {json.dumps({'path': QUESTION})}:\n{ANSWER}"
        in shown
    )
    assert any(
        "the user answers AskUserQuestion: Only staging." in text
        for text in asked
    )


def test_an_approval_of_the_wires_own_is_the_users():
    """Responses asks and answers in items of their own; the reason is quoted."""
    reason = "Yes, but only before noon, and never on a Friday."
    asked = {
        "type": "mcp_approval_request",
        "id": "mcpr_1",
        "name": "deploy",
        "arguments": "{}",
        "server_label": "ops",
    }
    given = {
        "type": "mcp_approval_response",
        "approval_request_id": "mcpr_1",
        "approve": True,
        "reason": reason,
    }
    format = "openai-responses"
    messages = [histories.user(format, "Deploy it."), asked, given]
    for number, turn in enumerate(turns(count=60), 1):
        messages += histories.WRITERS[format](turn, number, False)
    policy = Policy(name="guard-2", guard=DEFAULT.guard)
    session = Session(
        histories.MODEL[format],
        policy=policy,
        format=format,
        limits=LIMITS,
        recall=True,
    )
    view = last(format, session, messages)
    assert given not in view["input"]
    assert f"- user: approved: {reason}" in texts(format, view)


def test_no_secret_in_an_answer_gets_into_a_record():
    secret = "sk-live-0123456789abcdef"
    answer = f"The key is {secret}, use it for staging only."
    messages = histories.wire("openai-chat", list(turns(answer=answer)))
    session = Session(
        "gpt-4.1",
        format="openai-chat",
        limits=LIMITS,
        recall=True,
        redact=lambda text: text.replace(secret, "[secret]"),
    )
    view = last("openai-chat", session, messages)
    shown = texts("openai-chat", view)
    assert "The key is [secret], use it for staging only." in shown
    assert secret not in shown


def test_which_tools_ask_is_part_of_what_decides():
    """Their order and spelling are not; a change in mid-conversation is told, and legal."""
    assert fingerprint(DEFAULT) != fingerprint(DEFAULT, None, ("ask_me",))
    one = Session("gpt-4.1", user_tools=["b", "a"]).settings.policy_fingerprint
    assert (
        one
        == Session(
            "gpt-4.1", user_tools=("a", "b", "a")
        ).settings.policy_fingerprint
    )
    assert (
        one
        == Session(
            "gpt-4.1", user_tools=("A", "b")
        ).settings.policy_fingerprint
    )
    messages = histories.wire(
        "openai-chat", list(turns("ask_the_operator", count=30))
    )
    before = Session(
        "gpt-4.1", format="openai-chat", limits=LIMITS, recall=True
    )
    last("openai-chat", before, messages)
    after = Session(
        "gpt-4.1",
        format="openai-chat",
        limits=LIMITS,
        recall=True,
        state=before.state,
        user_tools=["ask_the_operator"],
    )
    after.fit(histories.request("openai-chat", messages))
    assert "changed" in [event.kind for event in after.events]


def test_a_cold_start_and_another_worker_show_the_same(tmp_path):
    messages = histories.wire("anthropic", list(turns("ask_the_operator")))
    settings = {
        "format": "anthropic",
        "limits": LIMITS,
        "recall": True,
        "user_tools": ["ask_the_operator"],
        "store": tmp_path / "kept.db",
    }
    with Session("claude-sonnet-4-5", **settings) as warm:
        view = last("anthropic", warm, messages)
    with Session("claude-sonnet-4-5", **settings) as cold:
        index = max(
            at
            for at, each in enumerate(messages)
            if each["role"] == "assistant"
        )
        again = cold.fit(histories.request("anthropic", messages[:index]))
    assert json.dumps(again) == json.dumps(view)
    assert ANSWER in texts("anthropic", again)


def test_names_that_cannot_be_meant_are_refused():
    for wrong in ("ask_me", [""], [None]):
        with pytest.raises(ConfigError, match="user_tools"):
            Session("gpt-4.1", user_tools=wrong)
