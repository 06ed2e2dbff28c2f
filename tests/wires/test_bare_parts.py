"""Parts among Gemini's contents: text and media are contents, calls and responses are refused.

google-genai joins neighbouring parts to contents, and puts dicts between them first.
"""

import pytest

from lab.returned import problems as judge
from tests.wires.rule_examples import (
    ASK,
    calls,
    contents,
    model,
    parts,
    responds,
)
from ullage import Session, fit, problems
from ullage.core.errors import FormatError

STEP = ["go", calls("a"), calls("b"), responds("a"), responds("b")]
WRAPPED = [
    "go",
    model(calls("a"), calls("b")),
    parts(responds("a"), responds("b")),
]


def objects(given):
    types = pytest.importorskip(
        "google.genai.types", reason="google-genai is not installed"
    )
    return [
        one if isinstance(one, str) else types.Part.model_validate(one)
        for one in given
    ]


@pytest.mark.parametrize(
    "read", [lambda given: given, objects], ids=["dicts", "objects"]
)
@pytest.mark.parametrize(
    "judged", [problems, fit, lambda request: fit(request, repair=True)]
)
def test_calls_and_responses_in_no_content_are_refused(read, judged):
    with pytest.raises(
        FormatError, match=r"contents\[1\].*in no content.*Wrap the parts"
    ):
        judged({"model": "gemini-2.5-pro", "contents": read(STEP)})


def test_wrapped_they_are_what_the_sdk_makes_of_them():
    transformers = pytest.importorskip(
        "google.genai._transformers", reason="no google-genai"
    )
    made = transformers.t_contents(objects(STEP))
    assert [(one.role, len(one.parts)) for one in made] == [
        ("user", 1),
        ("model", 2),
        ("user", 2),
    ]
    assert problems({"model": "gemini-2.5-pro", "contents": WRAPPED}) == []
    assert problems({"model": "gemini-2.5-pro", "contents": made}) == []


@pytest.mark.parametrize(
    "read", [lambda given: given, objects], ids=["dicts", "objects"]
)
def test_text_and_media_in_no_content_are_taken(read):
    picture = {"inlineData": {"mimeType": "image/png", "data": "iVBORw0KGgo="}}
    request = {
        "model": "gemini-2.5-pro",
        "contents": read(["What is this?", picture]),
    }
    assert problems(request) == []
    assert fit(request)["contents"] == request["contents"]


def test_a_call_that_stands_alone_is_a_content():
    request = contents(calls("a"), model="gemini-2.5-pro") | {
        "contents": calls("a")
    }
    assert [problem.rule for problem in problems(request)] == ["G4", "G3"]


# ── signatures as bytes ─────────────────────────────────────────────────────────────────────


def step(**more):
    part = {"function_call": {"name": "run", "args": {}}, **more}
    return [ASK, model(part), parts(responds())]


def test_a_signature_may_be_bytes_as_in_the_types_of_the_sdk():
    request = contents(*step(thought_signature=b"sig"), model="gemini-3-pro")
    assert problems(request) == []
    assert (
        Session("gemini-3-pro").fit(request)["contents"] == request["contents"]
    )
    unsigned = contents(*step(), model="gemini-3-pro")
    assert [problem.rule for problem in problems(unsigned)] == ["G7"]


def test_bytes_and_their_base64_are_one_signature():
    came = step(thoughtSignature="_-8=")
    assert (
        judge(
            "gemini",
            contents(*step(thought_signature=b"\xff\xef")),
            history=came,
        )
        == []
    )
    other = judge(
        "gemini", contents(*step(thought_signature=b"\xff")), history=came
    )
    assert [problem.rule for problem in other] == ["G8"]
