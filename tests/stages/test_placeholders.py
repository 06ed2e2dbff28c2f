"""A document's placeholder: the first characters, the ref, the marker."""

import json

import pytest

from tests import histories
from tests.history.test_window import METER, transcript_of
from tests.wires.rule_examples import png
from ullage import Policy, Session, problems
from ullage.core.history.builder import WindowBuilder
from ullage.core.history.transcript import leaves_of
from ullage.core.values.messages import Media
from ullage.core.values.notices import Words, pointers
from ullage.policy.stages.placeholders import head_and_marker, placeholder

MARKER = "[cut]"
PIXELS = png(64)["source"]["data"]


def cut(output, retain_chars=100, items=0):
    turn = histories.Turn(
        calls=(histories.Call("read", "a.py", output, items=items),)
    )
    transcript = transcript_of(
        histories.wire("anthropic", [turn]), "anthropic"
    )
    builder = WindowBuilder(transcript, METER, Words())
    builder.extend(len(transcript))
    window = builder.window
    (spot,) = list(window.results(0, window.size))[:1]
    return head_and_marker(
        window, spot, retain_chars=retain_chars, marker=MARKER, why="too much"
    )


def test_the_head_the_ref_and_the_marker():
    made = cut("x" * 5_000)
    head, _, ref, marker = made.edit.text.split("\n")
    assert (head, marker) == ("x" * 100, MARKER)
    assert pointers(ref)[0].ref == made.edit.ref == made.outputs[0].ref
    assert made.outputs[0].text == "x" * 5_000
    assert made.edit.why == "too much; 5,000 characters set aside"


@pytest.mark.parametrize(
    "output", ["x" * 100, "x" * 120, "", "x" * 5_000 + MARKER]
)
def test_left_alone_is_what_is_short_or_already_marked(output):
    assert cut(output) is None


IMAGES = {
    "anthropic": {
        "type": "image",
        "source": {
            "type": "base64",
            "media_type": "image/png",
            "data": PIXELS,
        },
    },
    "openai-chat": {
        "type": "image_url",
        "image_url": {"url": f"data:image/png;base64,{PIXELS}"},
    },
    "openai-responses": {
        "type": "input_image",
        "image_url": f"data:image/png;base64,{PIXELS}",
    },
    "gemini": {"inlineData": {"mimeType": "image/png", "data": PIXELS}},
}


def set_images_aside(window):
    return [
        cut
        for index in range(window.size - 1)
        for number, item, leaf in leaves_of(window.transcript.messages[index])
        if isinstance(leaf, Media)
        and (cut := placeholder(window, (index, number, item)))
    ]


@pytest.mark.parametrize("format", IMAGES)
def test_an_image_of_the_user_goes_whole_and_the_view_is_legal(format):
    messages = [
        *histories.wire(format, [histories.Turn()]),
        histories.user(format, "Go on."),
    ]
    body = next(key for key in ("parts", "content") if key in messages[0])
    text = {"openai-responses": {"type": "input_text"}, "gemini": {}}.get(
        format, {"type": "text"}
    )
    messages[0] = {
        **messages[0],
        body: [{**text, "text": "Look."}, IMAGES[format]],
    }
    policy = Policy(name="no old images", under_pressure=(set_images_aside,))
    request = histories.request(format, messages)
    view = Session(request.get("model", ""), policy=policy, format=format).fit(
        request
    )
    assert problems(request) == problems(view) == []
    assert PIXELS in json.dumps(request)
    assert PIXELS not in json.dumps(view)
