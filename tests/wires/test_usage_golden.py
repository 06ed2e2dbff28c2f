"""Usage of every API, whole and streamed: each token in exactly one class.

The files under ``fixtures/usage`` are written by hand after the types of the official SDKs,
which parse them here. Each gives a ``reply`` or the ``events`` of a stream, the ``usage`` it
must come to, and the ``total_tokens`` of everything paid for.
"""

import gzip
import json
import os
import re
from pathlib import Path

import msgspec
import pytest
from anthropic.types import RawMessageStreamEvent
from anthropic.types.beta import BetaMessage, BetaRawMessageStreamEvent
from google.genai.types import GenerateContentResponse
from hypothesis import given
from hypothesis import strategies as st
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from openai.types.responses import Response, ResponseStreamEvent
from pydantic import TypeAdapter

from ullage.core.errors import ConfigError
from ullage.core.values.usage import Usage
from ullage.wires import FORMATS, format_of

FILES = sorted(
    (Path(__file__).parents[1] / "fixtures" / "usage").glob("*.json")
)
GOLDEN = {file.stem: json.loads(file.read_text()) for file in FILES}
WHOLE = {name: golden for name, golden in GOLDEN.items() if "reply" in golden}
CLASSES = (
    "fresh_tokens",
    "cache_read_tokens",
    "cache_write_tokens",
    "output_tokens",
)


def events_of(golden):
    return golden["events"] if "events" in golden else [golden["reply"]]


def expected(golden):
    return golden["usage"] and msgspec.convert(golden["usage"], Usage)


def as_sdk(golden):
    """The events as objects of the SDK; its types refuse what no API would send."""
    events, streamed = events_of(golden), "events" in golden
    if any("prompt_eval_cached_count" in event for event in events):
        return events  # newer than Ollama's client, which passes it over
    match golden["format"]:
        case "openai-chat":
            kind = ChatCompletionChunk if streamed else ChatCompletion
        case "openai-responses":
            kind = ResponseStreamEvent if streamed else Response
        case "anthropic":
            kind = BetaRawMessageStreamEvent if streamed else BetaMessage
        case "gemini":
            kind = GenerateContentResponse
        case "ollama":
            kind = pytest.importorskip(
                "ollama", reason="ollama is not installed"
            ).ChatResponse
    return [TypeAdapter(kind).validate_python(event) for event in events]


@pytest.mark.parametrize("name", GOLDEN)
def test_events_as_dicts_as_objects_and_only_once(name):
    golden = GOLDEN[name]
    for events in (events_of(golden), as_sdk(golden), iter(events_of(golden))):
        assert FORMATS[golden["format"]].usage_of_stream(events) == expected(
            golden
        )


@pytest.mark.parametrize("name", GOLDEN)
def test_the_classes_add_up_to_what_the_api_counted(name):
    golden = GOLDEN[name]
    found = (
        FORMATS[golden["format"]].usage_of_stream(events_of(golden)) or Usage()
    )
    assert (
        sum(getattr(found, kind) for kind in CLASSES) == golden["total_tokens"]
    )
    assert found.total_tokens == golden["total_tokens"]
    assert found.reasoning_tokens <= found.output_tokens
    if told := re.findall(
        r'"total_?[Tt]oken(?:s|Count)": (\d+)', json.dumps(events_of(golden))
    ):
        assert int(told[-1]) == golden["total_tokens"]


@pytest.mark.parametrize("name", GOLDEN)
def test_every_token_is_of_one_modality(name):
    found = (
        FORMATS[GOLDEN[name]["format"]].usage_of_stream(
            events_of(GOLDEN[name])
        )
        or Usage()
    )
    assert found.input_media.total_tokens <= found.input_tokens
    assert found.output_media.total_tokens <= found.output_tokens
    assert found.cache_read_media.total_tokens <= found.cache_read_tokens
    assert found.long_write_tokens <= found.cache_write_tokens


@pytest.mark.parametrize("name", WHOLE)
def test_a_format_reads_a_whole_reply_alike(name):
    golden = WHOLE[name]
    read = FORMATS[golden["format"]].usage
    for reply in (golden["reply"], as_sdk(golden)[0]):
        assert read(reply) == expected(golden)


def test_both_anthropic_types_of_events_are_read():
    golden = GOLDEN["anthropic-stream"]
    kind = TypeAdapter(RawMessageStreamEvent)
    events = [kind.validate_python(event) for event in golden["events"]]
    assert FORMATS["anthropic"].usage_of_stream(events) == expected(golden)


def test_other_events_are_passed_over():
    noise = [
        None,
        "ping",
        3,
        {"type": "ping"},
        {"type": "error", "error": {"message": "x"}},
    ]
    for golden in GOLDEN.values():
        among = [
            item for event in events_of(golden) for item in (*noise, event)
        ] + noise
        assert FORMATS[golden["format"]].usage_of_stream(among) == expected(
            golden
        )
        assert FORMATS[golden["format"]].usage_of_stream(noise) is None


def test_a_stream_that_breaks_off_gives_what_it_told():
    for golden in GOLDEN.values():
        for end in range(len(events_of(golden))):
            found = FORMATS[golden["format"]].usage_of_stream(
                events_of(golden)[:end]
            )
            assert (
                found is None or found.total_tokens <= golden["total_tokens"]
            )


def test_an_unknown_format_says_which_there_are():
    with pytest.raises(
        ConfigError, match="openai-chat, openai-responses, anthropic, gemini"
    ):
        format_of("telegraph")


# -- for any counts -------------------------------------------------------------------------

counts = st.integers(0, 300_000)


@given(counts, counts, counts, counts, st.booleans())
def test_openai_tokens_stand_in_one_class(fresh, read, written, output, chat):
    prompt, done = ("prompt", "completion") if chat else ("input", "output")
    usage = {
        f"{prompt}_tokens": fresh + read + written,
        f"{prompt}_tokens_details": {
            "cached_tokens": read,
            "cache_write_tokens": written,
        },
        f"{done}_tokens": output,
        f"{done}_tokens_details": {"reasoning_tokens": output // 2},
    }
    event = {"object": "response", "usage": usage}
    found = FORMATS[
        "openai-chat" if chat else "openai-responses"
    ].usage_of_stream([event])
    assert found == Usage(
        fresh_tokens=fresh,
        cache_read_tokens=read,
        cache_write_tokens=written,
        output_tokens=output,
        reasoning_tokens=output // 2,
    )


@given(st.lists(st.dictionaries(
    st.sampled_from(("input_tokens", "output_tokens", "cache_read_input_tokens",
                     "cache_creation_input_tokens")), st.none() | counts), min_size=1))  # fmt: skip
def test_anthropic_counts_are_cumulative_and_never_summed(usages):
    first, *later = usages
    events = [{"type": "message_start", "message": {"usage": first}}]
    events += [{"type": "message_delta", "usage": usage} for usage in later]
    last = {}
    for usage in usages:
        last |= {
            name: count for name, count in usage.items() if count is not None
        }
    found = FORMATS["anthropic"].usage_of_stream(events)
    assert (found is None) == (not last)
    assert (found or Usage()).total_tokens == sum(last.values())


# -- recorded runs --------------------------------------------------------------------------

_BESIDE = Path(__file__).parents[2].parent / "shared" / "traces"
TRACES = Path(os.environ.get("ULLAGE_TRACES", _BESIDE))
WINDOW_TOKENS = 200_000


def replies(file):
    """The lines of each reply in a session log, as the events of a stream."""
    found = {}
    with gzip.open(file, "rt") as lines:
        for row in map(json.loads, lines):
            message = row.get("message")
            if (
                row.get("type") == "assistant"
                and message.get("model") != "<synthetic>"
            ):
                events = found.setdefault(message["id"], [])
                kind = "message_delta" if events else "message_start"
                events.append(
                    {
                        "type": kind,
                        "message": message,
                        "usage": message["usage"],
                    }
                )
    return found


@pytest.mark.skipif(
    not TRACES.is_dir(), reason="no recorded runs: set ULLAGE_TRACES"
)
@pytest.mark.parametrize(
    "file", sorted(TRACES.glob("native/claude-code-*")), ids=lambda f: f.name
)
def test_recorded_replies_come_to_plausible_sums(file):
    for events in replies(file).values():
        found = FORMATS["anthropic"].usage_of_stream(events)
        last = events[-1]["message"]["usage"]
        told = [
            n
            for n in last
            if n.endswith("input_tokens") or n == "output_tokens"
        ]
        assert found == FORMATS["anthropic"].usage(events[-1]["message"])
        assert found.total_tokens == sum(last[name] for name in told)
        assert 1_000 < found.input_tokens < WINDOW_TOKENS
        assert found.output_tokens < 64_000
