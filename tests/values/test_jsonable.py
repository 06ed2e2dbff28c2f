"""What hosts serialise themselves is read as they write it."""

import datetime
import decimal
import enum
import json
import uuid
from collections import namedtuple
from dataclasses import dataclass
from pathlib import PurePosixPath

import pytest
from google.genai import _common
from pydantic import BaseModel

import ullage
from ullage.core.errors import FormatError
from ullage.core.history.canon import canonical_json
from ullage.core.values.jsonable import as_google, jsonable
from ullage.doors.loop.tools import outcome_of
from ullage.wires import FORMATS

NOW = datetime.datetime(2026, 11, 26, 12, 30, tzinfo=datetime.UTC)


class Row(BaseModel):
    name: str
    at: datetime.datetime | None = None
    size: int | None = None


class Colour(enum.Enum):
    RED = "red"


@dataclass
class Point:
    x: int
    of: Row | None = None


class Scalar:
    """A number of numpy's, as far as anybody asks it."""

    def tolist(self):
        return 1.5


Pair = namedtuple("Pair", "a b")
VALUES = [
    (Row(name="a", at=NOW), {"name": "a", "at": NOW.isoformat()}),
    ([Row(name="a")], [{"name": "a"}]),
    (
        {"at": NOW, "day": NOW.date()},
        {"at": NOW.isoformat(), "day": "2026-11-26"},
    ),
    (decimal.Decimal("1.50"), "1.50"),
    (uuid.UUID(int=7), str(uuid.UUID(int=7))),
    (Colour.RED, "red"),
    (Point(1, Row(name="b")), {"x": 1, "of": {"name": "b"}}),
    ({"s": {3, 1, 2}}, {"s": [1, 2, 3]}),
    (PurePosixPath("/a/b"), "/a/b"),
    (ValueError("no such file"), "ValueError: no such file"),
    ({"deep": [{"n": Scalar()}]}, {"deep": [{"n": 1.5}]}),
]


@pytest.mark.parametrize(
    ("value", "written"), VALUES, ids=lambda each: type(each).__name__
)
def test_it_is_written_as_hosts_write_it(value, written):
    assert json.loads(json.dumps(value, default=jsonable)) == written


def test_bytes_are_base64_and_at_google_of_the_alphabet_for_urls():
    raw = b"\xfb\xef\xff"
    assert json.dumps(raw, default=jsonable) == '"++//"'
    given = {"raw": raw, "at": NOW, "in": {"raw": raw}}
    sent = json.dumps(_common.encode_unserializable_types(given))
    assert json.dumps(given, default=as_google) == sent


@pytest.mark.parametrize("value", [object(), int, lambda: None])
def test_what_nobody_can_write_is_refused(value):
    with pytest.raises(TypeError):
        json.dumps(value, default=jsonable)


def test_what_is_compared_is_the_same_text_in_every_process():
    row = Row(name="a", size=2)
    assert canonical_json({"s": {"b", "a"}, "row": row}) == (
        '{"row":{"name":"a","size":2},"s":["a","b"]}'
    )


def response(value):
    """A call of a function, and what it gave."""
    call = {
        "role": "model",
        "parts": [{"functionCall": {"name": "rows", "args": {}}}],
    }
    body = {
        "name": "rows",
        "response": value if isinstance(value, dict) else {"result": value},
    }
    return [call, {"role": "user", "parts": [{"functionResponse": body}]}]


@pytest.mark.parametrize(
    "value", [value for value, _ in VALUES], ids=lambda v: type(v).__name__
)
def test_a_response_that_the_sdk_serialises_is_fitted_and_given_on_as_it_is(
    value,
):
    contents = [{"role": "user", "parts": [{"text": "Go."}]}, *response(value)]
    session = ullage.Session("gemini-2.5-pro")
    view = session.fit({"model": "gemini-2.5-pro", "contents": contents})
    assert view["contents"][2] is contents[2]
    assert (
        session.fit({"model": "gemini-2.5-pro", "contents": contents}) == view
    )


def test_one_that_nobody_can_write_is_named_by_its_place():
    with pytest.raises(FormatError, match=r"functionResponse\.response"):
        FORMATS["gemini"].parse(response({"x": object()})[1], "contents[0]")


def test_a_tool_of_the_loop_may_return_what_it_likes():
    assert outcome_of(Row(name="a")).text == '{"name":"a"}'
    assert outcome_of([Point(1)]).text == '[{"x":1,"of":null}]'
    assert outcome_of({"at": NOW}).text == '{"at":"2026-11-26T12:30:00Z"}'
    assert not outcome_of(object()).is_error
