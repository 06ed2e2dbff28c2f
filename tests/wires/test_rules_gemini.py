"""The judge of Gemini contents: legal and illegal examples of each rule, and mutations."""

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.returned import problems, problems_of
from tests.wires import histories
from tests.wires.test_rules import SHAPES
from ullage.wires.rules.checker import check_of


def rules(contents, **more):
    return {
        problem.rule for problem in problems_of("gemini", contents, **more)
    }


def user(*parts):
    return {"role": "user", "parts": list(parts)}


def model(*parts):
    return {"role": "model", "parts": list(parts)}


def call(name="run", id=None, signature=None):
    part = {
        "functionCall": {
            **({"id": id} if id else {}),
            "name": name,
            "args": {},
        }
    }
    return part | ({"thoughtSignature": signature} if signature else {})


def gave(name="run", id=None, **more):
    known = {"id": id} if id else {}
    return {
        "functionResponse": {
            **known,
            "name": name,
            "response": {"output": "ok"},
        }
        | more
    }


TEXT = {"text": "hello"}
GO, DONE, GAVE = user(TEXT), model(TEXT), user(gave())
IMAGE = {"inlineData": {"mimeType": "image/png", "data": "AA=="}}
CODE = {"executableCode": {"language": "PYTHON", "code": "1"}}

LEGAL = {
    "the simplest": [GO],
    "no role": [{"parts": [TEXT]}],
    "strings, parts and lists, as the SDK takes them": [
        "go",
        TEXT,
        ["see", IMAGE],
    ],
    "a step": [GO, model(call()), GAVE],
    "the old role of responses": [
        GO,
        model(call()),
        {"role": "function", "parts": [gave()]},
    ],
    "calls of one name without ids": [
        GO,
        model(call(), call()),
        user(gave(), gave()),
    ],
    "responses in any order": [
        GO,
        model(call("a"), call("b")),
        user(gave("b"), gave("a")),
    ],
    "ids in any order": [
        GO,
        model(call(id="1"), call(id="2")),
        user(gave(id="2"), gave(id="1")),
    ],
    "an id on one side only": [
        GO,
        model(call(id="1"), call()),
        user(gave(), gave(id="client-made")),
    ],
    "ids used again": [GO, model(call(id="1")), user(gave(id="1"))] * 2,
    "text beside the responses": [GO, model(TEXT, call()), user(gave(), TEXT)],
    "server tools, and parts from the future": [
        GO,
        model(CODE, {"hologram": {}}),
        GO,
    ],
    "a thought and an empty text with a signature": [
        GO,
        model(
            {"text": "hm", "thought": True},
            {"text": "", "thoughtSignature": "c2ln"},
        ),
        GO,
    ],
    "steps of one turn, each signed": [
        GO,
        model(call(signature="c2ln"), call()),
        user(gave(), gave()),
        model(call(signature="c2lo")),
        GAVE,
    ],
    "an earlier turn without signatures": [
        GO,
        model(call()),
        GAVE,
        DONE,
        GO,
        model(call(signature="c2ln")),
        GAVE,
    ],
    "a signature that is told to be skipped": [
        GO,
        model(call(signature="skip_thought_signature_validator")),
        GAVE,
    ],
}
ILLEGAL = [
    ("G1", [{"role": "assistant", "parts": [TEXT]}]),
    ("G1", [{"role": "system", "parts": [TEXT]}, GO]),
    ("G1", [user(call()), GAVE]),
    ("G1", [GO, model(call()), model(gave()), GO]),
    ("G1", [7]),
    ("G2", [{"role": "user"}]),
    ("G2", [user()]),
    ("G2", [user({})]),
    ("G0", [user("no object")]),
    ("G2", [user({"text": ""})]),
    ("G0", [user({"text": 7})]),
    ("G2", [user(TEXT | IMAGE)]),
    ("G2", [GO, model({"thoughtSignature": "c2ln"}), GO]),
    ("G0", [GO, model({"functionCall": {"args": {}}}), user(gave())]),
    (
        "G0",
        [
            GO,
            model({"functionCall": {"name": "run", "args": "{}"}}),
            user(gave()),
        ],
    ),
    ("G0", [GO, model(call()), user(gave(response="ok"))]),
    ("G0", [GO, model(call()), user({"functionResponse": {"name": "run"}})]),
    ("G3", [GO, model(call())]),
    ("G3", [GO, model(call()), GO]),
    ("G3", [GO, model(call()), DONE, GO]),
    ("G3", [GO, model(call(), call()), GAVE]),
    ("G3", [GO, model(call()), user(gave(), gave())]),
    ("G3", [GO, model(call(), call()), GAVE, GAVE]),
    ("G4", [model(call()), GAVE]),
    ("G4", [GO, DONE, model(call()), GAVE]),
    ("G5", [GAVE]),
    ("G5", [GO, model(call()), GAVE, GAVE]),
    ("G5", [GO, model(call()), GO, GAVE]),
    ("G6", [GO, model(call("a")), user(gave("b"))]),
    ("G6", [GO, model(call(id="1")), user(gave(id="2"))]),
    ("G6", [GO, model(call("a", id="1")), user(gave("b", id="1"))]),
    (
        "G6",
        [
            GO,
            model(call(id="1"), call(id="2")),
            user(gave(id="1"), gave(id="1")),
        ],
    ),
    ("G6", [GO, model(call("a"), call("a")), user(gave("a"), gave("b"))]),
    ("G7", [GO, model(call(), call(signature="c2ln")), user(gave(), gave())]),
    (
        "G7",
        [
            GO,
            model(call(signature="c2l"), call(signature="c2ln")),
            user(gave(), gave()),
        ],
    ),
    ("G7", [GO, model(call(signature="c2ln")), GAVE, model(call()), GAVE]),
    ("G7", [GO, model(call()), GAVE, model(call(signature="c2ln")), GAVE]),
    ("G11", []),
    ("G11", [GO, DONE]),
]


@pytest.mark.parametrize("contents", LEGAL.values(), ids=LEGAL)
def test_what_is_legal_is_taken(contents):
    assert problems_of("gemini", contents) == []


@pytest.mark.parametrize(("rule", "contents"), ILLEGAL)
def test_the_rule_that_is_broken_is_named(rule, contents):
    assert rule in rules(contents)


def test_the_words_of_the_sdk_are_the_words_of_the_wire():
    called = {
        "function_call": {"name": "run", "args": {}},
        "thought_signature": "c2ln",
    }
    answered = {"function_response": {"name": "run", "response": {}}}
    assert rules([GO, model(called), user(answered)]) == set()
    assert rules([GO, model(called), user(answered), model(call()), GAVE]) == {
        "G7"
    }


HALF_SIGNED = [GO, model(call(signature="c2ln")), GAVE, model(call()), GAVE]
CACHED = {"cachedContent": "cachedContents/1"}
HEADS = [
    (set(), CACHED),
    ({"G12"}, CACHED | {"systemInstruction": {"parts": [TEXT]}}),
    ({"G12"}, CACHED | {"tools": [{"codeExecution": {}}]}),
    (
        {"G12"},
        {
            "config": {
                "cached_content": "cachedContents/1",
                "system_instruction": "x",
            }
        },
    ),
    (
        set(),
        {"model": "gemini-2.5-pro", "contents": [GO, model(call()), GAVE]},
    ),
    (set(), {"model": "gemini-2.5-pro", "contents": HALF_SIGNED}),
    ({"G7"}, {"model": "gemini-3-pro", "contents": HALF_SIGNED}),
    (
        {"G7"},
        {
            "model": "models/gemini-3-pro-preview",
            "contents": [GO, model(call()), GAVE],
        },
    ),
    (
        set(),
        {
            "model": "gemini-3-pro",
            "contents": [GO, model(call(signature="c2ln")), GAVE],
        },
    ),
    (
        set(),
        {
            "model": "gemini-4-argon",
            "contents": [GO, model(call()), GAVE, DONE, GO],
        },
    ),
    (set(), {"contents": "go"}),
]


@pytest.mark.parametrize(("broken", "head"), HEADS)
def test_the_head(broken, head):
    assert {
        p.rule for p in problems("gemini", {"contents": [GO]} | head)
    } == broken


SIGNED = [GO, model(call("a", signature="a-_b")), user(gave("a"))]
MOVED = [model(call("b", signature="a-_b")), user(gave("b"))]


@pytest.mark.parametrize(
    ("broken", "at", "contents"),
    [
        (set(), 1, []),
        (set(), 1, [model(call("a", signature="a+/b=="))]),
        ({"G8"}, 1, [model(call("a", signature="bWFkZSB1cA=="))]),
        ({"G8"}, 1, [model(call("x", signature="a-_b")), user(gave("x"))]),
        ({"G7", "G8"}, 1, [model(call("a")), SIGNED[2], *MOVED]),
        ({"G7"}, 1, [model(call("a"))]),
        (set(), 1, [model(call("a")), SIGNED[2], DONE, GO]),
    ],
)
def test_signatures_are_compared_with_what_came(broken, at, contents):
    """One signed step, sent with some of its contents changed."""
    sent = [*SIGNED[:at], *contents, *SIGNED[at + len(contents) :]]
    assert rules(sent, history=SIGNED) == broken


# -- generated ------------------------------------------------------------------------------


def gemini(turns, ids=True):
    """The turns of `histories` as contents: parallel calls, the first of each step signed."""
    contents = []
    for at, (ask, batches, answer) in enumerate(turns):
        contents.append(user({"text": ask}))
        for step, results in enumerate(batches):
            names = [
                f"c{at}_{step}_{n}" if ids else None
                for n in range(len(results))
            ]
            calls = [call(id=name) for name in names]
            calls[0]["thoughtSignature"] = f"s{at}{step}"
            contents.append(model(*calls))
            contents.append(
                user(*[
                    gave(id=name, response={"result": text})
                    for name, text in zip(names, results, strict=True)
                ])
            )  # fmt: skip
        contents.append(model({"text": answer}))
    return contents


@given(turns=histories.TURNS, ids=st.booleans())
def test_generated_histories_are_legal_before_every_reply(turns, ids):
    contents = gemini(turns, ids)
    checker = check_of("gemini")
    for at, content in enumerate(contents):
        if content["role"] == "model":
            assert checker.problems() == []
        checker.feed(content)
        assert checker.problems() == problems_of("gemini", contents[: at + 1])
    assert rules(contents, history=contents) == {"G11"}


def drop_response(contents, at):
    contents[at + 1]["parts"].pop()


def drop_calls(contents, at):
    del contents[at]


def drop_call(contents, at):
    contents[at]["parts"].pop()


def drop_responses(contents, at):
    del contents[at + 1]


def swap(contents, at):
    contents[at : at + 2] = contents[at + 1], contents[at]


def double_response(contents, at):
    contents[at + 1]["parts"] *= 2


def rename_response(contents, at):
    contents[at + 1]["parts"][0]["functionResponse"]["name"] = "other"


def other_id(contents, at):
    for part in contents[at]["parts"]:
        part["functionCall"]["id"] = "a"
    contents[at + 1]["parts"][0]["functionResponse"]["id"] = "b"


def split_responses(contents, at):
    first, *rest = contents[at + 1]["parts"]
    contents[at + 1 : at + 2] = [user(first), user(*rest)]


def speak_between(contents, at):
    contents.insert(at + 1, GO)


def speak_before(contents, at):
    contents.insert(at, DONE)


def responses_later(contents, at):
    contents.extend([GO, contents.pop(at + 1)])


def empty_text(contents, at):
    contents[-1]["parts"][0]["text"] = ""


def wrong_role(contents, at):
    contents[at]["role"] = "assistant"


def arguments_as_text(contents, at):
    contents[at]["parts"][0]["functionCall"]["args"] = "{}"


def move_signature(contents, at):
    parts = contents[at]["parts"]
    parts.append(parts.pop(0))


def sign_a_sibling(contents, at):
    contents[at]["parts"][-1]["thoughtSignature"] = "bWFkZSB1cA=="


def lose_signature(contents, at):
    del contents[at]["parts"][0]["thoughtSignature"]


MUTATIONS = [
    drop_response, drop_calls, drop_call, drop_responses, swap, double_response, other_id,
    rename_response, split_responses, speak_between, speak_before, responses_later, empty_text,
    wrong_role, arguments_as_text, move_signature, sign_a_sibling, lose_signature,
]  # fmt: skip


@pytest.mark.parametrize(
    "mutate", MUTATIONS, ids=lambda mutation: mutation.__name__
)
@given(turns=histories.TURNS, ids=st.booleans(), first=st.booleans())
def test_every_mutation_of_a_legal_history_is_caught(
    mutate, turns, ids, first
):
    """The last turn has two steps of two calls; one of them is changed."""
    contents = gemini(
        [*turns, ("ask", [["r", "s"], ["t", "u"]], "answer")], ids
    )[:-1]
    assert problems_of("gemini", contents) == []
    if mutate is empty_text:
        contents.append(user({"text": "x"}))
    mutate(
        contents, len(contents) - (4 if first else 2) - (mutate is empty_text)
    )
    found = problems_of("gemini", contents)
    assert found
    assert all(p.where and p.sentence and p.remedy for p in found)


@given(request=SHAPES, more=SHAPES)
def test_any_json_is_judged_without_an_exception(request, more):
    parts = {
        "parts": request if isinstance(request, list) else [request],
        "role": "model",
    }
    body = {"functionCall": request, "thoughtSignature": more}
    contents = [
        GO,
        parts,
        model(body),
        user({"functionResponse": more}),
        request,
    ]
    problems("gemini", request)
    problems(
        "gemini",
        {"contents": contents, "config": more, "model": request},
        history=[more],
    )
    problems("gemini", {"contents": request})


def test_objects_of_the_sdk_are_dumped():
    types = pytest.importorskip(
        "google.genai.types", reason="google-genai is not installed"
    )
    called = types.Part(
        function_call=types.FunctionCall(name="run", args={}),
        thought_signature=b"sig",
    )
    given = types.Part.from_function_response(
        name="run", response={"result": 1}
    )
    contents = [
        types.Content(role="user", parts=[types.Part(text="go")]),
        types.Content(role="model", parts=[called]),
        {"role": "user", "parts": [given]},
    ]
    assert problems("gemini", {"contents": contents}, history=contents) == []
    assert rules(contents[:2]) == {"G3"}
    assert rules([contents[0], contents[1], contents[1]]) >= {"G3", "G4"}


def test_nothing_is_changed():
    contents = gemini([("a", [["b", ""]], "c")])
    before = copy.deepcopy(contents)
    problems(
        "gemini", {"contents": contents, "model": "gemini-3"}, history=contents
    )
    assert contents == before
