"""The judge of OpenAI Responses: each rule with examples, and mutations of legal histories."""

import copy

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from lab.returned import problems, problems_of
from tests import histories
from ullage.wires.rules.checker import check_of

FORMAT = "openai-responses"
USER = {"role": "user", "content": "go"}
DONE = {"type": "message", "role": "assistant", "content": "done"}
TEXT = {"type": "input_text", "text": "hello"}
IMAGE = {
    "type": "input_image",
    "detail": "auto",
    "image_url": "data:image/png;base64,AA==",
}


def rules(items, **more):
    return {problem.rule for problem in problems_of(FORMAT, items, **more)}


def call(call_id="c1", **more):
    return {
        "type": "function_call",
        "call_id": call_id,
        "name": "run",
        "arguments": "{}",
    } | more


def gave(call_id="c1", output="ok", **more):
    return {
        "type": "function_call_output",
        "call_id": call_id,
        "output": output,
    } | more


def thought(name="rs_1", sealed="gAAAA", **more):
    item = {
        "type": "reasoning",
        "id": name,
        "summary": [],
        "encrypted_content": sealed,
    }
    return item | more


def said(*parts, **more):
    return {
        "type": "message",
        "role": "assistant",
        "content": list(parts),
    } | more


CUSTOM = {
    "type": "custom_tool_call",
    "call_id": "c1",
    "name": "sh",
    "input": "ls",
}
CUSTOM_GAVE = {
    "type": "custom_tool_call_output",
    "call_id": "c1",
    "output": "a",
}
SHELL = {"type": "shell_call", "call_id": "c1", "action": {"commands": ["ls"]}}
CHUNK = {
    "stdout": "a",
    "stderr": "",
    "outcome": {"type": "exit", "exit_code": 0},
}
SHELL_GAVE = {"type": "shell_call_output", "call_id": "c1", "output": [CHUNK]}
REFERENCE = {"type": "item_reference", "id": "fc_1"}
TRIGGER = {"type": "compaction_trigger"}
SEARCH = {
    "type": "web_search_call",
    "id": "ws_1",
    "status": "completed",
    "action": {},
}

LEGAL = {
    "the simplest": [USER],
    "any role first and last": [DONE, USER, USER, DONE, DONE],
    "a batch, answered in any order": [USER, call("a"), call("b"), gave("b"), gave("a"), DONE],
    "something between call and output": [call(), USER, gave()],
    "an output after the next reply": [call(), USER, DONE, gave()],
    "an asynchronous call, not answered": [USER, call() | {"async": True}, DONE],
    "an asynchronous call, answered later": [call() | {"async": True}, DONE, USER, gave()],
    "an output without a call id": [USER, {"type": "function_call_output", "output": "x"}],
    "two outputs of one call": [call(), gave(output="pending"), DONE, gave()],
    "a custom tool": [CUSTOM, CUSTOM_GAVE],
    "a shell": [SHELL, SHELL_GAVE],
    "a call held by reference": [USER, REFERENCE, gave()],
    "reasoning before a message, a call, a search": [
        thought(), DONE, thought("rs_2"), call(), gave(), thought("rs_3"), SEARCH, DONE
    ],
    "reasoning before parallel calls": [thought(), call("a"), call("b"), gave("a"), gave("b")],
    "reasoning in two items": [thought(), thought("rs_2"), DONE],
    "ids of every kind": [
        thought(), said(id="msg_1"), call(id="fc_1"), gave(id="fco-1"), CUSTOM | {"id": "ctc_1"},
        CUSTOM_GAVE,
    ],
    "media in an output": [call(), gave(output=[TEXT, IMAGE])],
    "parts from the user": [{"role": "user", "content": [TEXT, IMAGE]}],
    "output text and a refusal": [
        said({"type": "output_text", "text": "x"}, {"type": "refusal", "refusal": "no"})
    ],
    "an id used again in a later turn": [call(), gave(), call(), gave()],
    "empty text": [call(), gave(output=""), {"role": "user", "content": ""}],
    "a trigger at the end": [USER, TRIGGER],
    "a compaction anywhere": [USER, {"type": "compaction", "encrypted_content": "g"}, USER],
    "a type from the future": [{"type": "hologram", "beam": 1}],
}  # fmt: skip
ILLEGAL = [
    ("R0", []),
    ("R0", ["just text"]),
    ("R0", [{"content": "x"}]),
    ("R0", [{"role": "robot", "content": "x"}]),
    ("R0", [{"role": "user", "content": None}]),
    ("R0", [{"role": "user", "content": [{"type": "text", "text": "x"}]}]),
    ("R0", [{"role": "user", "content": [{"type": "input_text"}]}]),
    (
        "R0",
        [{"role": "user", "content": [{"type": "output_text", "text": "x"}]}],
    ),
    ("R0", [call(arguments={}), gave()]),
    ("R0", [call(None)]),
    ("C6", [call("x" * 65), gave("x" * 65)]),
    ("R0", [call(), gave(output=None)]),
    ("R0", [call(), gave(output={"text": "x"})]),
    ("R0", [CUSTOM | {"input": None}, CUSTOM_GAVE]),
    ("R0", [CUSTOM, {"type": "custom_tool_call_output", "output": "x"}]),
    ("R0", [SHELL, SHELL_GAVE | {"output": [{"stdout": "a"}]}]),
    ("R0", [SHELL, SHELL_GAVE | {"output": "a"}]),
    (
        "R0",
        [{"type": "reasoning", "id": "rs_1", "encrypted_content": "g"}, DONE],
    ),
    ("R1", [USER, call()]),
    ("R1", [USER, call(), DONE]),
    ("R1", [call("a"), call("b"), gave("a"), DONE]),
    ("R1", [call(), call(), gave(), gave()]),
    ("R1", [SHELL, USER]),
    ("R2", [USER, gave()]),
    ("R2", [gave(), call(), gave()]),
    ("R2", [SHELL_GAVE]),
    ("R3", [USER, thought()]),
    ("R3", [USER, thought(), USER]),
    ("R3", [call(), thought(), gave()]),
    ("R5", [call(id="msg_1"), gave()]),
    ("R5", [call(id="fc 1"), gave()]),
    ("R5", [said(id="resp_1")]),
    ("R5", [thought("r1"), DONE]),
    ("R5", [CUSTOM | {"id": "fc_1"}, CUSTOM_GAVE]),
    ("R6", [said(id="msg_1"), said(id="msg_1")]),
    ("R6", [said(id="msg_1"), {"type": "item_reference", "id": "msg_1"}]),
    ("R6", [said(id="msg 1"), said(id="msg 1")]),
    ("R14", [USER, TRIGGER, USER]),
]


@pytest.mark.parametrize("items", LEGAL.values(), ids=LEGAL)
def test_what_is_legal_is_taken(items):
    assert problems_of(FORMAT, items) == []


@pytest.mark.parametrize(("rule", "items"), ILLEGAL)
def test_the_rule_that_is_broken_is_named(rule, items):
    assert rule in rules(items)


REPLY = [thought(), call("a", id="fc_a"), call("b", id="fc_b")]
RETURNED = [
    USER,
    *REPLY,
    gave("a"),
    gave("b"),
    thought("rs_2"),
    said(id="msg_1"),
]
BARE = [{k: v for k, v in item.items() if k != "id"} for item in RETURNED]

AS_RETURNED = {
    "everything": (set(), RETURNED),
    "nothing of a reply": (set(), [USER, *RETURNED[6:]]),
    "no reasoning and no ids": (set(), [i for i in BARE if i.get("type") != "reasoning"]),
    "calls without their reasoning": ({"R4"}, [USER, *RETURNED[2:]]),
    "a message without its reasoning": ({"R4"}, [*RETURNED[:6], RETURNED[7]]),
    "reasoning before another item": ({"R3"}, [USER, REPLY[0], REPLY[2], gave("b")]),
    "a later reply's reasoning instead": (
        {"R3", "R4"}, [USER, thought("rs_2"), *REPLY[1:], gave("a"), gave("b")]
    ),
    "another seal": ({"R8"}, [USER, thought(sealed="gBBBB"), *RETURNED[2:]]),
    "no seal": ({"R8"}, [USER, thought(sealed=None), *RETURNED[2:]]),
}  # fmt: skip


@pytest.mark.parametrize(
    ("broken", "items"), AS_RETURNED.values(), ids=AS_RETURNED
)
def test_reasoning_is_compared_with_what_was_returned(broken, items):
    assert rules(items, history=RETURNED) == broken


HEADS = [
    ("R7", {"store": False, "input": [USER, REFERENCE]}),
    ("R7", {"store": False, "input": [thought(sealed=None), DONE]}),
    ("R10", {"previous_response_id": "resp_1", "conversation": "conv_1"}),
    ("R0", {"tools": {}}),
    ("R0", {"input": None}),
]


@pytest.mark.parametrize(("rule", "head"), HEADS)
def test_the_head(rule, head):
    assert [p.rule for p in problems(FORMAT, {"input": [USER]} | head)] == [
        rule
    ]


def test_heads_that_are_legal():
    assert problems(FORMAT, {"input": "go", "store": False, "tools": []}) == []
    assert (
        problems(
            FORMAT, {"input": [USER, REFERENCE], "previous_response_id": "r"}
        )
        == []
    )
    opened = thought(sealed=None) | {
        "content": [{"type": "reasoning_text", "text": "hm"}]
    }
    assert problems(FORMAT, {"input": [opened, DONE], "store": False}) == []


# -- generated ------------------------------------------------------------------------------

GENERATED = histories.histories.map(
    lambda turns: histories.wire(FORMAT, turns)
)


@given(GENERATED)
def test_generated_histories_are_legal_and_so_is_every_prefix_before_a_reply(
    items,
):
    checker = check_of(FORMAT)
    made = ("reasoning", "message", "function_call")
    for at, item in enumerate(items):
        if item.get("type") in made and items[at - 1].get("type") not in made:
            assert checker.problems() == []
        checker.feed(item)
    assert checker.problems() == []
    assert rules(items, history=items) == set()


def of(items, kind):
    return [at for at, item in enumerate(items) if item.get("type") == kind]


def drop_output(items, at):
    del items[at("function_call_output")]


def drop_call(items, at):
    del items[at("function_call")]


def drop_reasoning(items, at):
    del items[at("reasoning")]


def drop_what_reasoning_needs(items, at):
    del items[at("reasoning") + 1]


def reasoning_alone(items, at):
    items.insert(at("reasoning") + 1, USER)


def output_first(items, at):
    items.insert(0, items.pop(at("function_call_output")))


def rename_output(items, at):
    items[at("function_call_output")]["call_id"] = "other"


def double_call(items, at):
    where = at("function_call")
    items.insert(where, copy.deepcopy(items[where]))


def double_id(items, at):
    items.append(copy.deepcopy(items[at("reasoning")]))


def foreign_id(items, at):
    items[at("function_call")]["id"] = "call_7"


def touch_seal(items, at):
    items[at("reasoning")]["encrypted_content"] += "A"


def broken_arguments(items, at):
    items[at("function_call")]["arguments"] = {}


def broken_output(items, at):
    items[at("function_call_output")]["output"] = None


def cut_before_outputs(items, at):
    del items[: at("function_call") + 1]


def cut_after_call(items, at):
    del items[at("function_call") + 1 :]


def trigger_in_between(items, at):
    items.insert(at("function_call"), TRIGGER)


MUTATIONS = [
    drop_output, drop_call, drop_reasoning, drop_what_reasoning_needs, reasoning_alone,
    output_first, rename_output, double_call, double_id, foreign_id, touch_seal,
    broken_arguments, broken_output, cut_before_outputs, cut_after_call, trigger_in_between,
]  # fmt: skip


@pytest.mark.parametrize(
    "mutate", MUTATIONS, ids=lambda mutation: mutation.__name__
)
@given(items=GENERATED, data=st.data())
def test_every_mutation_of_a_legal_history_is_caught(mutate, items, data):
    items = copy.deepcopy(items)
    returned = copy.deepcopy(items)
    assume(of(items, "reasoning") and of(items, "function_call"))
    mutate(items, lambda kind: data.draw(st.sampled_from(of(items, kind))))
    found = problems_of(FORMAT, items, history=returned)
    assert found
    assert all(p.where and p.sentence and p.remedy for p in found)


SHAPES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3)
    | st.sampled_from(["user", "assistant", "message", "reasoning", "function_call", "input_text",
                       "function_call_output", "shell_call_output", "compaction_trigger"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(
        st.sampled_from(["role", "content", "type", "text", "id", "call_id", "output", "input",
                         "name", "arguments", "summary", "encrypted_content", "tools", "store"]),
        inner, max_size=4,
    ),
    max_leaves=12,
)  # fmt: skip


@given(request=SHAPES)
def test_any_json_is_judged_without_an_exception(request):
    assert problems(FORMAT, request) or isinstance(request, dict)
    assert problems(FORMAT, {"input": request}) or isinstance(
        request, (list, str)
    )
    problems(FORMAT, {"input": [request], "tools": request, "store": False})
    problems(FORMAT, {"input": request}, history=[request])


def test_client_objects_are_dumped():
    responses = pytest.importorskip("openai").types.responses
    made = responses.ResponseFunctionToolCall.model_validate(call(id="fc_1"))
    later = responses.ResponseFunctionToolCall.model_validate(
        call("c2") | {"async": True}
    )
    assert problems(FORMAT, {"input": [USER, made, later, gave()]}) == []
    assert rules([USER, made]) == {"R1"}
