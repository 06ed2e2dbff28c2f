"""What the vendors' SDKs really send goes through untouched, to the byte.

Three grounds: captured requests (`tests/fixtures/wire`), calls of the SDKs with and without
ullage side by side, and generated histories.
"""

import importlib.metadata
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import histories
from tests.capture import SCRIPT, SDKS, bodies
from tests.histories import CUTS_ALWAYS
from tests.servers.loops import loop
from tests.servers.replies import MODELS
from ullage import Limits, Session
from ullage.core.values.messages import ToolCall
from ullage.wires import FORMATS

FOLDER = Path(__file__).parents[1] / "fixtures" / "wire"
CAPTURES = sorted(FOLDER.glob("*.json"))
ROOMY = Limits(window_tokens=900_000)
captured = pytest.mark.parametrize(
    "file", CAPTURES, ids=lambda file: file.stem
)
every = pytest.mark.parametrize("format", FORMATS)


def format_of(file):
    return next(format for format in FORMATS if file.stem.startswith(format))


def as_sent(format, value):
    """JSON with the separators and escapes of the vendor's client."""
    if format in ("gemini", "bedrock-converse"):
        return json.dumps(value).encode()
    return json.dumps(
        value, ensure_ascii=False, separators=(",", ":")
    ).encode()


def new_session(format):
    more = {
        "policy": CUTS_ALWAYS,
        "limits": ROOMY,
        "format": format,
        "recall": False,
    }
    return Session(MODELS[format], **more)


@captured
def test_a_captured_request_goes_through_to_the_byte(file):
    format, raw = format_of(file), file.read_bytes()
    request = json.loads(raw)
    assert as_sent(format, request) == raw
    view = new_session(format).fit(request)
    key = FORMATS[format].key
    assert all(a is b for a, b in zip(view[key], request[key], strict=True))
    assert as_sent(format, view) == raw


@captured
def test_every_captured_message_is_written_as_it_was_read(file):
    format, raw = format_of(file), file.read_bytes()
    request, wire = json.loads(raw), FORMATS[format]
    again = [
        wire.edit(message, wire.parse(message, f"[{index}]"), ())
        for index, message in enumerate(request[wire.key])
    ]
    assert as_sent(format, {**request, wire.key: again}) == raw


@every
def test_the_captures_are_what_the_sdk_sends(format):
    """Made again, they are the same; else `python -m tests.capture`."""
    name = SDKS[format]
    version = f"{name} {importlib.metadata.version(name)}"
    if version not in (FOLDER / "README.md").read_text(encoding="utf-8"):
        pytest.skip(f"captured with another version of {name}")
    stored = {
        file.stem: file.read_bytes()
        for file in CAPTURES
        if format_of(file) == format
    }
    assert {f"{format}-{kind}": raw for kind, raw in bodies(format)} == stored


@every
def test_the_sdks_send_the_same_bytes_with_and_without_ullage(serve, format):
    """The same agent twice, its history made of the SDK's own objects."""
    without, within = serve(format, SCRIPT), serve(format, SCRIPT)
    session = new_session(format)
    loop(without, None, lambda name, given: f"{name} {given}")
    loop(within, session, lambda name, given: f"{name} {given}")
    assert len(without.requests) == len(SCRIPT)
    assert [sent.raw for sent in within.requests] == [
        sent.raw for sent in without.requests
    ]
    assert not session.window.changed


@every
@given(turns=histories.histories, reuse=st.booleans())
def test_any_history_is_written_as_it_was_read(format, turns, reuse):
    wire = FORMATS[format]
    for raw in histories.wire(format, turns, reuse_ids=reuse):
        assert as_sent(
            format, wire.edit(raw, wire.parse(raw, "message"), ())
        ) == as_sent(format, raw)


@every
@pytest.mark.parametrize("text", [" ", "\n \t\n", " x ", '{"output":" "}'])
def test_a_page_is_read_as_it_was_given_though_it_is_blank(format, text):
    """Converse takes no blank text (B6), and the last page of an output may be one."""
    wire = FORMATS[format]
    (carrier,) = wire.results(
        [wire.result(ToolCall("call_1", "read", "{}", 0), text)]
    )
    (result,) = wire.parse(carrier, "message").results
    assert [leaf.text for leaf in result.content] == [text]


@every
@given(turns=histories.histories, reuse=st.booleans())
def test_messages_with_nothing_large_in_them_go_through_untouched(
    format, turns, reuse
):
    request = histories.request(
        format, histories.wire(format, turns, reuse_ids=reuse)
    )
    before = json.dumps(request)
    view = new_session(format).fit(request)
    wire = FORMATS[format]
    small = [len(json.dumps(message)) < 2_000 for message in request[wire.key]]
    pairs = zip(view[wire.key], request[wire.key], small, strict=True)
    assert all(a is b for a, b, is_small in pairs if is_small)
    assert json.dumps(request) == before
