"""Images in tool results: counted by their pixels, set aside, and given back whole."""

import base64
import struct

from tests import histories
from ullage import Limits, Session
from ullage.core.values.notices import pointers

MODEL = "claude-sonnet-4-5"


def png(width, height, filler):
    """A PNG's beginning, and as many bytes more."""
    header = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR" + struct.pack(
        ">II", width, height
    )
    return base64.b64encode(header + bytes(filler)).decode()


def shots(count, filler=200_000):
    """A history of screenshots, each in a tool result beside a line of text."""
    messages = [{"role": "user", "content": "Click through the form."}]
    for number in range(count):
        call = {
            "type": "tool_use",
            "id": f"shot_{number}",
            "name": "screenshot",
            "input": {},
        }
        source = {
            "type": "base64",
            "media_type": "image/png",
            "data": png(1000, 800, filler),
        }
        content = [
            {"type": "text", "text": f"page {number}"},
            {"type": "image", "source": source},
        ]
        result = {
            "type": "tool_result",
            "tool_use_id": f"shot_{number}",
            "content": content,
        }
        messages += [
            {"role": "assistant", "content": [call]},
            {"role": "user", "content": [result]},
        ]
    return messages


def new_session(window_tokens):
    return Session(
        MODEL, limits=Limits(window_tokens=window_tokens), recall=True
    )


def test_an_image_counts_as_its_pixels_and_not_as_its_base64():
    session = new_session(200_000)
    session.fit(histories.request("anthropic", shots(1)))
    assert 800 < session.window.tokens - session.window.head_tokens < 2_500


def test_old_images_leave_the_window_and_come_back_as_what_they_were():
    messages = shots(20)
    session = new_session(16_000)
    view = session.fit(histories.request("anthropic", messages))["messages"]
    assert session.window.estimate <= session.window.limit_tokens
    (shown,) = view[1]["content"]
    line = next(line for line in shown["text"].split("\n") if "page 0" in line)
    following = shown["text"].split(line)[1].split("\n")[1]
    (pointer,) = pointers(following)
    arguments = {"tool_call_id": pointer.ref}
    call = {
        "type": "tool_use",
        "id": "c",
        "name": "get_continuation",
        "input": arguments,
    }
    given = session.recall(call)["content"]
    assert given == [messages[2]["content"][0]["content"][1]]


def test_the_newest_image_stays():
    messages = shots(20)
    view = new_session(16_000).fit(histories.request("anthropic", messages))[
        "messages"
    ]
    assert view[-1] is messages[-1]
