"""A number that is written as it was read is a float in every other way."""

import copy
import json
import pickle

import msgspec
import pytest

from ullage.core.history.canon import canonical_json
from ullage.core.values.numbers import Number, as_written, number_of

READ = msgspec.json.Decoder(float_hook=number_of).decode
WRITE = msgspec.json.Encoder(enc_hook=as_written).encode


def test_only_a_number_that_python_writes_otherwise_keeps_its_literal():
    assert type(READ("0.5")) is float
    assert type(READ("5e-1")) is Number
    assert WRITE(READ("[0.5,5e-1]")) == b"[0.5,5e-1]"


@pytest.mark.parametrize("literal", ["1e2", "1e400", "0.10"])
def test_a_copy_keeps_the_literal(literal):
    number = READ(literal)
    for other in (
        copy.copy(number),
        copy.deepcopy(number),
        pickle.loads(pickle.dumps(number)),
    ):
        assert (other, other.literal) == (float(literal), literal)


def test_how_a_number_is_written_is_nothing_of_what_a_message_is():
    assert canonical_json(READ('{"a":1e2}')) == canonical_json(
        json.loads('{"a":1e2}')
    )
    assert canonical_json(READ("1e400")) == canonical_json(float("inf"))


def test_what_is_no_number_is_refused():
    for hook in (as_written,):
        with pytest.raises(TypeError, match="object"):
            hook(object())
