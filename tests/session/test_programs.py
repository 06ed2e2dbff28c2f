"""What a program reads goes to it whole, and is no context of the model."""

import json

import pytest

from tests import histories
from ullage import Limits, Session
from ullage.documents import NAMES, preset
from ullage.policy import Policy, ProposedEdit, Replace, placeholder
from ullage.policy.stages.default import DEFAULT
from ullage.wires import FORMATS

ROWS = json.dumps(
    [
        {"id": n, "amount": n * 7 % 1000, "name": f"customer {n}"}
        for n in range(1500)
    ]
)
SUM = sum(row["amount"] for row in json.loads(ROWS))
LOG = "one line of a log as they all are\n" * 90
FORMS = ("anthropic", "openai-responses")


def program(format, number=1):
    """The model writes code, the code calls a tool, and is given a table."""
    if format == "anthropic":
        caller = {
            "type": "code_execution_20260120",
            "tool_id": f"srvtoolu_{number}",
        }
        code = {
            "type": "server_tool_use",
            "id": f"srvtoolu_{number}",
            "name": "code_execution",
            "input": {"code": "print(sum(r['amount'] for r in query()))"},
        }
        call = {
            "type": "tool_use",
            "id": f"toolu_{number}",
            "name": "query",
            "input": {
                "sql": "select * from orders -- " + "all of them " * 400
            },
            "caller": caller,
        }
        result = {
            "type": "tool_result",
            "tool_use_id": f"toolu_{number}",
            "content": ROWS,
        }
        return [
            {"role": "assistant", "content": [code, call]},
            {"role": "user", "content": [result]},
        ]
    caller = {"type": "program", "caller_id": f"prog_{number}"}
    return [
        {
            "type": "program",
            "id": f"p_{number}",
            "call_id": f"prog_{number}",
            "code": "print(sum(r['amount'] for r in query()))",
            "fingerprint": "f",
        },
        {
            "type": "function_call",
            "call_id": f"call_p{number}",
            "name": "query",
            "arguments": json.dumps(
                {"sql": "select * from orders -- " + "all of them " * 400}
            ),
            "caller": caller,
        },
        {
            "type": "function_call_output",
            "call_id": f"call_p{number}",
            "output": ROWS,
        },
    ]


def ended(format, number=1):
    """The program has printed its sum, and the model goes on."""
    if format == "anthropic":
        block = {
            "type": "code_execution_tool_result",
            "tool_use_id": f"srvtoolu_{number}",
            "content": {
                "type": "code_execution_result",
                "stdout": str(SUM),
                "stderr": "",
                "return_code": 0,
                "content": [],
            },
        }
        return [
            {
                "role": "assistant",
                "content": [block, {"type": "text", "text": "It is done."}],
            }
        ]
    out = {
        "type": "program_output",
        "call_id": f"prog_{number}",
        "result": str(SUM),
    }
    return [
        {**out, "status": "completed"},
        {
            "role": "assistant",
            "content": [{"type": "output_text", "text": "It is done."}],
        },
    ]


def given(format, messages):
    """The tables that the programs are given, as JSON reads them."""
    found = []
    for message in messages:
        for result in FORMATS[format].parse(message, "m").results:
            found += [
                leaf.text
                for leaf in result.content
                if "amount" in getattr(leaf, "text", "")
            ]
    return found


def asked(format, messages, **more):
    return histories.request(format, messages, **more)


@pytest.mark.parametrize("policy", NAMES)
@pytest.mark.parametrize("format", FORMS)
def test_a_result_that_a_program_reads_goes_whole_under_every_policy(
    format, policy
):
    """At first sight, at every later turn, and in a window that is much smaller than the table."""
    limits = Limits(window_tokens=12_000, output_reserve_tokens=1_000)
    chosen = preset(policy)
    session = Session(
        histories.MODEL[format], policy=chosen, format=format, limits=limits
    )
    messages = [histories.user(format, "What is the sum of all amounts?")]
    session.fit(asked(format, messages))
    messages += program(format)
    for _ in range(2):
        view = session.fit(asked(format, messages))
        assert given(format, FORMATS[format].history(view)) == [ROWS]
    assert session.window.estimate < 6_000


@pytest.mark.parametrize("format", FORMS)
def test_it_counts_no_tokens_and_so_refuses_nothing(format):
    """Nobody pays for it: a table of many windows is passed on, and nothing gives way to it."""
    vast = json.dumps([ROWS] * 20)
    session = Session(
        histories.MODEL[format],
        format=format,
        recall=True,
        limits=Limits(window_tokens=16_000, output_reserve_tokens=1_000),
    )
    messages = [
        histories.user(format, "What is the sum?" + LOG),
        *program(format),
    ]
    messages = json.loads(
        json.dumps(messages).replace(json.dumps(ROWS), json.dumps(vast))
    )
    view = session.fit(asked(format, messages))
    assert FORMATS[format].history(view) == messages
    assert session.window.within(session.window.limit_tokens, surely=True)
    assert not [
        event
        for event in session.events
        if event.kind in ("truncated", "condensed")
    ]


GUARDED = Policy(name="guarded-1", guard=DEFAULT.guard)
"""Condenses near the limit, and does nothing before."""


@pytest.mark.parametrize(
    "policy", [DEFAULT, GUARDED], ids=lambda policy: policy.name
)
@pytest.mark.parametrize("format", FORMS)
def test_it_is_whole_or_gone_in_a_long_conversation(format, policy):
    """While the program runs its table stands; what is condensed later has all of the exchange."""
    limits = Limits(window_tokens=16_000, output_reserve_tokens=1_000)
    settings = {
        "policy": policy,
        "format": format,
        "recall": True,
        "limits": limits,
    }
    session = Session(histories.MODEL[format], **settings)
    messages = [histories.user(format, "What are the sums?")]
    for number in range(14):
        messages += program(format, number)
        shown = FORMATS[format].history(session.fit(asked(format, messages)))
        tables = given(format, shown)
        assert tables
        assert set(tables) == {ROWS}
        messages += ended(format, number)
        call = histories.Call("read_file", "log", LOG * 3)
        turn = histories.Turn(user=f"Go on, {number}.", calls=(call,))
        messages += histories.WRITERS[format](turn, number + 100, False)
        shown = FORMATS[format].history(session.fit(asked(format, messages)))
        assert set(given(format, shown)) <= {ROWS}
    assert session.window.summaries
    assert (len(given(format, shown)) < 14) == (policy is GUARDED)
    again = Session(histories.MODEL[format], **settings, state=session.state)
    assert FORMATS[format].history(again.fit(asked(format, messages))) == shown


def cuts_everything(window, /):
    """A user's stage that wants every result and every argument shorter, whoever reads them."""
    cuts = []
    for index in range(window.size):
        for number, part in enumerate(window.transcript.messages[index].parts):
            spot = index, number, 0
            output = window.transcript.output(spot)
            if output is not None and hasattr(part, "call_id"):
                place = window.transcript.address(spot)
                cuts.append(
                    ProposedEdit(
                        Replace(place, output.ref, "[]", "pruned", "mine"),
                        (output,),
                    )
                )
            cuts += [cut] if (cut := placeholder(window, spot)) else []
    return cuts


@pytest.mark.parametrize("format", FORMS)
def test_no_stage_of_a_users_own_can_shorten_it(format):
    policy = Policy(
        name="mine-1", under_pressure=(cuts_everything,), guard=DEFAULT.guard
    )
    session = Session(
        histories.MODEL[format], policy=policy, format=format, recall=True
    )
    messages = [histories.user(format, "What is the sum?")]
    session.fit(asked(format, messages))
    messages += program(format)
    shown = FORMATS[format].history(session.fit(asked(format, messages)))
    assert shown == messages


def test_a_result_without_its_call_says_itself_who_reads_it():
    """The provider holds the history: all that is here is the result, and who asked for it."""
    *_, result = program("openai-responses")
    result = {**result, "caller": {"type": "program", "caller_id": "prog_1"}}
    session = Session("gpt-5.6", format="openai-responses")
    request = asked(
        "openai-responses", [result], previous_response_id="resp_1"
    )
    assert session.fit(request)["input"] == [result]
    direct = {**result, "caller": {"type": "direct"}}
    session = Session("gpt-5.6", format="openai-responses", recall=True)
    request = asked(
        "openai-responses", [direct], previous_response_id="resp_1"
    )
    assert session.fit(request)["input"] != [direct]


def test_a_page_that_a_program_asked_for_stays_as_it_was():
    """A recall call of a program's is answered as any other; its page is never taken back."""
    messages = [
        histories.user("anthropic", "Read all of it."),
        *program("anthropic"),
    ]
    page = json.loads(
        json.dumps(messages[1:]).replace('"query"', '"get_continuation"')
    )
    page[1]["content"][0]["content"] = "a page\n" * 900
    messages[1:] = page
    messages += ended("anthropic")
    session = Session(
        "claude-sonnet-4-5",
        format="anthropic",
        recall=True,
        policy=Policy(name="mine-2", under_pressure=(cuts_everything,)),
    )
    shown = session.fit(asked("anthropic", messages))["messages"]
    assert shown[:3] == messages[:3]
