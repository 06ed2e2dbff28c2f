"""Pictures cost by their size, whatever their bytes weigh."""

import base64
import struct
import zlib
from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ullage.core.tokens.media import image_tokens, media_tokens
from ullage.core.tokens.payload import image_size, video_seconds
from ullage.core.values.messages import Media

SIDES = st.integers(1, 16_383)


def cost(model, kind, mime, data, width=0, height=0, **more):
    return media_tokens(
        model, Media(kind, mime, data, 0, width, height, **more)
    )


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
    segments = (
        b"\xff\xd8\xff\xe0" + struct.pack(">H", 16) + b"JFIF\0" + b"\0" * 9
    )
    if exif:
        segments += (
            b"\xff\xe1" + struct.pack(">H", exif) + b"\xff" * (exif - 2)
        )
    frame = struct.pack(">HBHHB", 17, 8, height, width, 3) + b"\0" * 9
    return segments + b"\xff\xff\xc2" + frame + b"\0" * 64


def webp_extended(width, height):
    size = (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(
        3, "little"
    )
    return b"RIFF\0\0\0\0WEBPVP8X\x0a\0\0\0\0\0\0\0" + size + b"\0" * 64


def webp_lossless(width, height):
    bits = (width - 1) | (height - 1) << 14
    return (
        b"RIFF\0\0\0\0WEBPVP8L\0\0\0\0\x2f"
        + bits.to_bytes(4, "little")
        + b"\0" * 64
    )


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


@given(
    raw=st.binary(max_size=300),
    make=st.sampled_from(MAKERS),
    cut=st.integers(0, 60),
)
def test_rubbish_has_no_size_and_raises_nothing(raw, make, cut):
    for data in (
        b64(raw),
        b64(make(5, 5)[:cut] + raw),
        raw.decode("latin-1"),
        b64(raw)[:-1],
    ):
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


@pytest.mark.parametrize(
    "model", ["gpt-4o", "claude-opus-4-5", "gemini-2.5-pro", "other"]
)
@pytest.mark.parametrize("kind", ["image", "document"])
def test_base64_is_never_counted_as_text(model, kind):
    data = b64(png(1024, 1024) + b"\x07" * 4_000_000)
    mime = "image/png" if kind == "image" else "application/pdf"
    tokens = cost(model, kind, mime, data)
    assert 0 < tokens < (5_000 if kind == "image" else len(data) / 10)


@pytest.mark.parametrize(
    "data", ["https://example.org/a.png", "file-abc123", ""]
)
@pytest.mark.parametrize(
    "model", ["gpt-4o", "claude-opus-4-5", "claude-opus-5", "gemini-2.5-pro"]
)
def test_unseen_pictures_cost_what_the_largest_ordinary_one_does(model, data):
    large = cost(model, "image", "image/png", "", 1536, 1536)
    assert cost(model, "image", "image/png", data) >= large


def test_a_pdfs_pages_are_counted_from_its_page_tree():
    def paid(raw):
        return cost("claude-opus-4-5", "document", "application/pdf", b64(raw))

    seven = (
        b"%PDF-1.7\n1 0 obj << /Type /Pages /Count 7 /Kids [] >>\n"
        + b"\0" * 90_000
    )
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


def test_a_wavs_own_rate_tells_how_long_it_is():
    rate = struct.pack("<IHHII", 16, 1, 1, 16_000, 32_000)
    wav = b"RIFF\0\0\0\0WAVEfmt " + rate + b"\2\0\x10\0data" + bytes(320_000)
    assert cost("gemini-2.5-pro", "audio", "audio/wav", b64(wav)) == 11 * 32


SIDE = 3_000
PATCHES = ceil(SIDE / 32) ** 2


@pytest.mark.parametrize(
    ("model", "low", "high", "original", "unsaid"),
    [
        ("gpt-4o", 85, 765, 765, 765),
        ("gpt-4.1", 85, 765, 765, 765),
        ("gpt-5", 70, 630, 630, 630),
        ("o3", 75, 675, 675, 675),
        ("computer-use-preview", 65, 581, 581, 581),
        ("gpt-5-mini", 415, 2489, 2489, 2489),
        ("o4-mini", 441, 2642, 2642, 2642),
        ("gpt-5.2", 256, 1536, 1536, 1536),
        ("gpt-5.1-codex", 256, 1536, 1536, 1536),
        ("gpt-5.4", 256, 2500, PATCHES, 2500),
        ("gpt-5.5", 256, 2500, PATCHES, PATCHES),
        ("gpt-5.6", 256, 2500, PATCHES, PATCHES),
        ("gpt-6.2-sol", 256, 2500, PATCHES, PATCHES),
        ("claude-opus-5-5", 4784, 4784, 4784, 4784),
        ("gemini-2.5-pro", 64, 16 * 258, 16 * 258, 16 * 258),
        ("gemini-4-argon", 280, 1120, 1120, 1120),
    ],
)
def test_a_picture_is_looked_at_as_finely_as_asked_for(
    model, low, high, original, unsaid
):
    details = ("low", "high", "original", "")
    found = [image_tokens(model, SIDE, SIDE, detail) for detail in details]
    assert found == [low, high, original, unsaid]
    assert image_tokens(model, SIDE, SIDE, "never heard of") == unsaid


@given(
    width=SIDES,
    height=SIDES,
    model=st.sampled_from(["gpt-5.4", "gpt-6", "gpt-5-mini", "gpt-4o"]),
)
def test_a_low_detail_never_costs_more_than_a_high_one(width, height, model):
    low, high = (
        image_tokens(model, width, height, detail)
        for detail in ("low", "high")
    )
    assert 0 < low <= high


def box(name, body):
    return struct.pack(">I", len(body) + 8) + name + body


def movie(seconds, version=0, scale=600):
    times, form = (8, ">Q") if version else (4, ">I")
    told = (
        bytes([version, 0, 0, 0]) + bytes(2 * times) + struct.pack(">I", scale)
    )
    return box(
        b"moov",
        box(
            b"mvhd", told + struct.pack(form, int(seconds * scale)) + bytes(80)
        ),
    )


FILM = box(b"ftyp", b"isom\0\0\2\0")


@given(
    seconds=st.integers(1, 7_200),
    version=st.integers(0, 1),
    first=st.booleans(),
    shots=st.integers(0, 5_000),
)
def test_an_mp4_tells_its_seconds_wherever_it_says_so(
    seconds, version, first, shots
):
    told, frames = movie(seconds, version), box(b"mdat", b"\7" * shots)
    data = b64(FILM + (told + frames if first else frames + told))
    assert video_seconds(data) == seconds
    assert video_seconds(f"data:video/mp4;base64,{data}") == seconds


def test_a_movie_of_more_than_four_gigabytes_has_its_size_elsewhere():
    frames = (
        struct.pack(">I", 1)
        + b"mdat"
        + struct.pack(">Q", 16 + 90)
        + b"\7" * 90
    )
    assert video_seconds(b64(FILM + frames + movie(33))) == 33


def webm(seconds):
    scale = b"\x2a\xd7\xb1\x83" + (1_000_000).to_bytes(3, "big")
    return (
        b"\x1a\x45\xdf\xa3"
        + bytes(30)
        + scale
        + b"\x44\x89\x88"
        + struct.pack(">d", seconds * 1e3)
    )


@given(seconds=st.floats(0.01, 1e5))
def test_a_webm_tells_its_seconds(seconds):
    assert video_seconds(b64(webm(seconds))) == pytest.approx(seconds)


@given(raw=st.binary(max_size=400), cut=st.integers(0, 200))
def test_of_rubbish_no_seconds_are_known(raw, cut):
    for film in (raw, (FILM + movie(9))[:cut] + raw, webm(9)[:cut] + raw):
        assert video_seconds(b64(film)) >= 0
        assert cost("gemini-3-pro", "document", "video/mp4", b64(film)) > 0
    for duration in (b"\xff" * 4, b"\0" * 4):
        told = bytes(12) + struct.pack(">I", 600) + duration + bytes(80)
        assert video_seconds(b64(FILM + box(b"moov", box(b"mvhd", told)))) == 0


@pytest.mark.parametrize(
    ("model", "detail", "a_second"),
    [
        ("gemini-3-pro", "", 70 + 42),
        ("gemini-3-pro", "low", 70 + 42),
        ("gemini-3-pro", "high", 280 + 42),
        ("gemini-2.5-pro", "", 258 + 42),
        ("gemini-2.5-pro", "low", 66 + 42),
    ],
)
def test_a_video_costs_its_seconds_and_not_its_bytes(model, detail, a_second):
    def paid(seconds, shots, **more):
        film = b64(FILM + box(b"mdat", b"\7" * shots) + movie(seconds))
        return cost(
            model, "document", "video/mp4", film, detail=detail, **more
        )

    assert paid(60, 100) == paid(60, 5_000_000) == 60 * a_second
    assert paid(60, 100, clip_s=12.0) == 12 * a_second
    assert paid(60, 100, clip_s=900.0) == 60 * a_second
    assert paid(60, 100, frames_per_s=2.0) == 60 * (2 * a_second - 42)


def test_a_video_of_unknown_length_is_taken_for_five_minutes_or_by_its_bytes():
    def paid(data, **more):
        return cost("gemini-3-pro", "document", "video/mp4", data, **more)

    url = "https://www.youtube.com/watch?v=a"
    assert paid(url) == 300 * 112
    assert paid(url, clip_s=20.0) == 20 * 112
    assert paid(b64(bytes(9_600_000))) < 20_000


@pytest.mark.parametrize(
    ("model", "detail", "a_page"),
    [
        ("gemini-3-pro", "", 560),
        ("gemini-3-pro", "low", 280),
        ("gemini-3-pro", "high", 1120),
        ("gemini-2.5-pro", "high", 258),
        ("gpt-4o", "low", 2_250 + 85),
    ],
)
def test_a_page_is_looked_at_as_finely_as_asked_for(model, detail, a_page):
    four = b64(b"%PDF-1.7\n1 0 obj << /Type /Pages /Count 4 /Kids [] >>\n")
    assert (
        cost(model, "document", "application/pdf", four, detail=detail)
        == 4 * a_page
    )
