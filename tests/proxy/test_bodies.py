"""Bodies: bounded, and decoded only where all is well."""

import gzip
import zlib

import pytest
from backports import zstd
from hypothesis import given
from hypothesis import strategies as st

from ullage.proxy.bodies import Held, decoded

PACK = {"gzip": gzip.compress, "deflate": zlib.compress, "zstd": zstd.compress}


@given(st.binary(max_size=2_000), st.lists(st.sampled_from(sorted(PACK)), max_size=3))
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
    held = Held(10)
    assert held.take(6)
    assert not held.take(5)
    held.give(2)
    assert held.take(6)
    assert held.bytes == 10
