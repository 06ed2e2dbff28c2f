"""Which media leave the view because no request may hold them; see also F60 and F61."""

import base64
import struct

import pytest

from ullage import Session, problems
from ullage.core.values.limits import ANTHROPIC_MEDIA, OTHER_MEDIA
from ullage.policy.stages.media import refused_media

MEGABYTE = "A" * 1_333_332


def png(width, height, tail):
    header = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR" + struct.pack(
        ">II", width, height
    )
    return base64.b64encode(header + bytes(22)).decode() + tail


def asked(*blocks, model="claude-opus-5"):
    """A request in which the user shows all of them at once, and then one more."""
    before, last = list(blocks[:-1]), blocks[-1:]
    return {
        "model": model,
        "max_tokens": 100,
        "messages": [
            {
                "role": "user",
                "content": [*before, {"type": "text", "text": "Look."}],
            },
            {"role": "assistant", "content": "Go on."},
            {
                "role": "user",
                "content": [*last, {"type": "text", "text": "And this."}],
            },
        ],
    }


def medium(data, mime="image/png"):
    kind = "image" if mime.startswith("image") else "document"
    return {
        "type": kind,
        "source": {"type": "base64", "media_type": mime, "data": data},
    }


def left(request):
    """The media that are still in the view, in order, after two calls that agree."""
    session = Session(request["model"])
    view = session.fit(request)
    assert session.fit(request) == view
    assert problems(view, "anthropic") == []
    blocks = (
        block for message in view["messages"] for block in message["content"]
    )
    return [
        b["source"]["data"]
        for b in blocks
        if isinstance(b, dict) and "source" in b
    ]


def test_a_document_may_weigh_more_than_an_image():
    heavy = "JVBERi0x" + MEGABYTE * 12
    assert left(
        asked(medium(heavy, "application/pdf"), medium(png(9, 9, "")))
    ) == [
        heavy,
        png(9, 9, ""),
    ]


def test_what_is_new_stays_and_half_of_what_may_be_sent_is_left():
    pictures = [png(10, 10, MEGABYTE[: -4 * n]) for n in range(1, 25)]
    shown = left(asked(*map(medium, pictures)))
    assert shown == pictures[-len(shown) :]
    assert 8 <= len(shown) <= 12


@pytest.mark.parametrize(
    ("model", "most"), [("claude-opus-5", 600), ("claude-sonnet-4-5", 100)]
)
def test_no_more_images_are_sent_than_a_model_takes(model, most):
    pictures = [png(10, 10 + n, "") for n in range(most + 1)]
    assert (
        left(asked(*map(medium, pictures[:most]), model=model))
        == pictures[:most]
    )
    assert (
        left(asked(*map(medium, pictures), model=model))
        == pictures[-(most // 2) :]
    )


def test_where_nothing_is_known_of_single_images_only_their_weight_together_counts():
    assert OTHER_MEDIA.takes(100_000, OTHER_MEDIA.request_bytes)
    assert not OTHER_MEDIA.takes(0, OTHER_MEDIA.request_bytes + 1)
    assert not ANTHROPIC_MEDIA.takes(8_001, 1)


def test_a_history_without_media_is_not_looked_through():
    session = Session("gpt-4o")
    session.fit(
        {
            "model": "gpt-4o",
            "messages": [{"role": "user", "content": "Hello."}],
        }
    )
    assert refused_media(session.window) == []
