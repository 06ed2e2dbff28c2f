"""Bodies: bounded, and decoded only where all is well."""

import gzip
import zlib

import pytest
from backports import zstd
from hypothesis import given
from hypothesis import strategies as st

from ullage.doors.proxy.bodies import BodyBudget, decoded
from ullage.doors.proxy.decoding import Undecodable, decoder_of

PACK = {"gzip": gzip.compress, "deflate": zlib.compress, "zstd": zstd.compress}


@given(
    st.binary(max_size=2_000),
    st.lists(st.sampled_from(sorted(PACK)), max_size=3),
)
def test_what_was_compressed_comes_back(data, encodings):
    packed = data
    for name in encodings:
        packed = PACK[name](packed)
    assert decoded(packed, ", ".join(encodings), 10_000) == data


@pytest.mark.parametrize("encoding", sorted(PACK))
def test_a_small_body_cannot_fill_the_memory(encoding):
    bomb = PACK[encoding](bytes(50 << 20))
    assert decoded(bomb, encoding, 1 << 20) is None


@pytest.mark.parametrize("encoding", sorted(PACK))
def test_what_is_cut_short_or_no_such_thing_is_not_decoded(encoding):
    packed = PACK[encoding](b"words " * 100)
    assert decoded(packed[:-3], encoding, 10_000) is None
    assert decoded(b"no such thing", encoding, 10_000) is None
    assert decoded(packed, "br", 10_000) is None


def test_what_is_held_is_bounded():
    held = BodyBudget(10)
    assert held.take(6)
    assert not held.take(5)
    held.give(2)
    assert held.take(6)
    assert held.bytes == 10


# ── piece by piece ───────────────────────────────────────────────────────────────────────


def raw_deflate(data):
    return zlib.compress(data)[2:-4]


PARTS = {**PACK, "x-gzip": gzip.compress}


@given(
    st.lists(st.binary(min_size=1, max_size=300), min_size=1, max_size=4),
    st.sampled_from(sorted(PARTS)),
    st.integers(1, 40),
)
def test_several_parts_in_a_row_are_one_body_wherever_it_is_cut(
    parts, encoding, step
):
    packed = b"".join(map(PARTS[encoding], parts))
    decoder, plain = decoder_of(encoding), b""
    for start in range(0, len(packed), step):
        plain += b"".join(decoder.feed(packed[start : start + step]))
    decoder.end()
    assert plain == b"".join(parts)
    assert decoded(packed, encoding, 10_000) == plain


@pytest.mark.parametrize("encoding", sorted(PACK))
def test_what_comes_out_comes_in_pieces_whatever_went_in(encoding):
    bomb = PACK[encoding](bytes(20 << 20))
    sizes = [len(piece) for piece in decoder_of(encoding).feed(bomb)]
    assert (sum(sizes), max(sizes) <= 1 << 20) == (20 << 20, True)


@pytest.mark.parametrize("encoding", sorted(PACK))
@pytest.mark.parametrize(
    "damage", ["cut", "garbage behind", "a part cut", "another"]
)
def test_what_is_not_whole_is_an_error(encoding, damage):
    packed = PACK[encoding](b"words " * 100)
    broken = {
        "cut": packed[:-3],
        "garbage behind": packed + b"garbage",
        "a part cut": packed + packed[:-1],
        "another": b"no such thing",
    }
    decoder = decoder_of(encoding)
    with pytest.raises(Undecodable):
        whole_of(decoder, broken[damage])


def whole_of(decoder, data):
    found = b"".join(decoder.feed(data))
    decoder.end()
    return found


def test_deflate_has_the_frame_of_zlib_or_none():
    assert whole_of(decoder_of("deflate"), raw_deflate(b"words")) == b"words"
    assert (
        whole_of(decoder_of("gzip"), gzip.compress(b"words") + bytes(20))
        == b"words"
    )
    assert decoder_of("br") is None
