"""A block that nobody knows counts as a medium where it plainly holds one."""

from base64 import b64encode, encodebytes

import pytest

from ullage.session.session import Session
from ullage.wires import FORMATS
from ullage.wires.unknown_media import MOST_TOKENS, is_base64, media_tokens_of

BYTES = bytes(range(256)) * 1_000
BASE64 = b64encode(BYTES).decode()


@pytest.mark.parametrize(
    "block",
    [
        {"type": "hologram", "data": BASE64},
        {"type": "hologram", "data": f"data:image/new;base64,{BASE64}"},
        {"type": "hologram", "frames": [{"source": {"bytes": BYTES}}]},
        {
            "type": "hologram",
            "data": BASE64.replace("+", "-").replace("/", "_"),
        },
        {"type": "hologram", "data": encodebytes(BYTES).decode()},
    ],
)
def test_bytes_and_base64_cost_what_a_large_picture_costs(block):
    assert MOST_TOKENS <= media_tokens_of(block) < MOST_TOKENS + 10


def test_each_of_several_counts_and_so_does_what_is_said_beside_them():
    two = {
        "type": "hologram",
        "frames": [BASE64, BASE64],
        "said": "some words " * 400,
    }
    assert media_tokens_of(two) > 2 * MOST_TOKENS + 1_000


def test_a_pdf_counts_by_its_pages():
    """As the result of a server's tool has it, say: a page is words and a picture."""
    pdf = b64encode(
        b"%PDF-1.7\n" + b"<< /Type /Pages /Count 30 >>\n" + BYTES
    ).decode()
    source = {"type": "base64", "media_type": "application/pdf", "data": pdf}
    content = {
        "type": "web_fetch_result",
        "content": {"type": "document", "source": source},
    }
    block = {
        "type": "web_fetch_tool_result",
        "tool_use_id": "srvtoolu_1",
        "content": content,
    }
    found = FORMATS["anthropic"].parse(
        {"role": "assistant", "content": [block]}, "messages[0]"
    )
    assert 30 * 2_250 < found.parts[0].tokens < 30 * 5_000


def test_a_small_one_costs_no_more_than_its_text():
    assert media_tokens_of({"type": "icon", "data": "A" * 1_024}) == 257


@pytest.mark.parametrize(
    "block",
    [
        {"type": "note", "text": "some words " * 500},
        {"type": "note", "text": "x" * 400},
        {"type": "sealed", "encrypted_content": BASE64},
        {"type": "sealed", "thought": {"signature": BASE64}},
        {"type": "table", "rows": [["a"] * 600]},
    ],
)
def test_words_and_what_is_sealed_for_the_model_are_no_media(block):
    assert media_tokens_of(block) is None


def test_a_text_is_base64_if_it_is_long_and_of_no_other_character():
    assert is_base64("QUJD" * 200)
    assert not is_base64("QUJD" * 100)
    assert not is_base64("two words " * 100)


@pytest.mark.parametrize(
    "format", ["anthropic", "openai-chat", "openai-responses"]
)
def test_a_request_with_one_is_counted_so_and_the_block_stays_the_caller_s(
    format,
):
    content = [
        {"type": "text", "text": "Look."},
        {"type": "hologram", "data": BASE64},
    ]
    key = FORMATS[format].key
    request = {"model": "gpt-5.6", key: [{"role": "user", "content": content}]}
    session = Session("gpt-5.6", format=format)
    view = session.fit(request)
    assert view[key][0] is request[key][0]
    assert session.window.tokens < 2 * MOST_TOKENS
