"""Pictures cost by their size, whatever their bytes weigh."""

import base64
import struct
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ullage.messages import Media
from ullage.tokens import media_tokens
from ullage.tokens.payload import image_size

SIDES = st.integers(1, 16_383)


def cost(model, kind, mime, data, width=0, height=0, **more):
    return media_tokens(model, Media(kind, mime, data, 0, width, height, **more))


def b64(raw):
    return base64.b64encode(raw).decode()


def png(width, height):
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunk = b"IHDR" + head
    body = struct.pack(">I", 13) + chunk + struct.pack(">I", zlib.crc32(chunk))
    return b"\x89PNG\r\n\x1a\n" + body + b"\0" * 64


def gif(width, height):
    return b"GIF89a" + struct.pack("<HH", width, height) + b"\0" * 64


def jpeg(width, height, exif=0):
    segments = b"\xff\xd8\xff\xe0" + struct.pack(">H", 16) + b"JFIF\0" + b"\0" * 9
    if exif:
        segments += b"\xff\xe1" + struct.pack(">H", exif) + b"\xff" * (exif - 2)
    frame = struct.pack(">HBHHB", 17, 8, height, width, 3) + b"\0" * 9
    return segments + b"\xff\xff\xc2" + frame + b"\0" * 64


def webp_extended(width, height):
    size = (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little")
    return b"RIFF\0\0\0\0WEBPVP8X\x0a\0\0\0\0\0\0\0" + size + b"\0" * 64


def webp_lossless(width, height):
    bits = (width - 1) | (height - 1) << 14
    return b"RIFF\0\0\0\0WEBPVP8L\0\0\0\0\x2f" + bits.to_bytes(4, "little") + b"\0" * 64


def webp_lossy(width, height):
    head = b"RIFF\0\0\0\0WEBPVP8 \0\0\0\0\0\0\0\x9d\x01\x2a"
    return head + struct.pack("<HH", width, height) + b"\0" * 64


MAKERS = [png, gif, jpeg, webp_extended, webp_lossless, webp_lossy]


@pytest.mark.parametrize("make", MAKERS)
@given(width=SIDES, height=SIDES)
def test_the_size_is_read_from_the_head(make, width, height):
    data = b64(make(width, height))
    assert image_size(data) == (width, height)
    assert image_size(f"data:image/any;base64,{data}") == (width, height)


@given(exif=st.integers(2, 65_535))
def test_a_jpegs_size_is_found_behind_its_metadata(exif):
    assert image_size(b64(jpeg(640, 480, exif))) == (640, 480)


@given(raw=st.binary(max_size=300), make=st.sampled_from(MAKERS), cut=st.integers(0, 60))
def test_rubbish_has_no_size_and_raises_nothing(raw, make, cut):
    for data in (b64(raw), b64(make(5, 5)[:cut] + raw), raw.decode("latin-1"), b64(raw)[:-1]):
        width, height = image_size(data)
        assert width >= 0
        assert height >= 0
        assert cost("gpt-4o", "image", "image/png", data) > 0


@pytest.mark.parametrize(
    ("model", "width", "height", "tokens"),
    [
        ("gpt-4o", 1024, 1024, 85 + 4 * 170),
        ("gpt-4o", 2048, 4096, 85 + 6 * 170),
        ("gpt-4o", 512, 512, 85 + 170),
        ("gpt-5", 1024, 1024, 70 + 4 * 140),
        ("gpt-4.1-mini", 1024, 1024, 1659),
        ("o4-mini", 4000, 4000, 2642),
        ("claude-sonnet-4-5", 280, 280, 100),
        ("claude-sonnet-4-5", 4000, 4000, 1568),
        ("claude-opus-5-5", 4000, 4000, 4784),
        ("gemini-2.0-flash", 384, 384, 258),
        ("gemini-2.5-pro", 1536, 768, 2 * 258),
        ("gemini-4-argon", 50, 50, 1120),
    ],
)
def test_the_vendors_formulas(model, width, height, tokens):
    assert cost(model, "image", "image/png", "", width, height) == tokens
    data = b64(png(width, height))
    assert cost(model, "image", "image/png", data) == tokens


@pytest.mark.parametrize("model", ["gpt-4o", "claude-opus-4-5", "gemini-2.5-pro", "other"])
@pytest.mark.parametrize("kind", ["image", "document"])
def test_base64_is_never_counted_as_text(model, kind):
    data = b64(png(1024, 1024) + b"\x07" * 4_000_000)
    mime = "image/png" if kind == "image" else "application/pdf"
    tokens = cost(model, kind, mime, data)
    assert 0 < tokens < (5_000 if kind == "image" else len(data) / 10)


@pytest.mark.parametrize("data", ["https://example.org/a.png", "file-abc123", ""])
@pytest.mark.parametrize("model", ["gpt-4o", "claude-opus-4-5", "claude-opus-5", "gemini-2.5-pro"])
def test_unseen_pictures_cost_what_the_largest_ordinary_one_does(model, data):
    large = cost(model, "image", "image/png", "", 1536, 1536)
    assert cost(model, "image", "image/png", data) >= large


def test_a_pdfs_pages_are_counted_from_its_page_tree():
    def paid(raw):
        return cost("claude-opus-4-5", "document", "application/pdf", b64(raw))

    seven = b"%PDF-1.7\n1 0 obj << /Type /Pages /Count 7 /Kids [] >>\n" + b"\0" * 90_000
    assert paid(seven) == 7 * (2_250 + 1_568)
    assert paid(b"%PDF-1.7\n" + b"\0" * 500_000) == 11 * (2_250 + 1_568)
    late = b"%PDF-1.7\n" + b"\0" * 900_001 + b"<< /Type /Pages /Count 3 >>"
    assert paid(late) == 3 * (2_250 + 1_568)


def test_text_documents_and_sounds():
    text = b64(b"word " * 600)
    assert 500 < cost("gpt-4o", "document", "text/plain", text) < 2_000
    sound = b64(b"\0" * 150_000)
    assert cost("gemini-2.5-pro", "audio", "audio/mp3", sound) == 320
    assert cost("gpt-4o", "audio", "audio/mp3", "https://example.org/a") == 600
