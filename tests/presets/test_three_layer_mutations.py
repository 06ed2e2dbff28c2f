"""The three-layer preset, changed and pushed: each setting and each word matters, bad input is
told of or survived, and the gates of `metrics` hold in every format."""

import importlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from lab import reading
from tests import histories
from tests.presets.three_layer import Asked, call, result, words
from ullage import ConfigError, FormatError, Limits, OverLimitError, Session
from ullage.documents import load, three_layer
from ullage.documents.presets.three_layer import ThreeLayerSettings
from ullage.documents.services import (
    prune_messages,
    retrieve_spilled,
    truncate_output,
)
from ullage.policy.stages.prune import results_only
from ullage.wires import FORMATS
from ullage.wires.rules.checker import problems_of

MODULE = importlib.import_module("ullage.documents.presets.three_layer")
BASE = ThreeLayerSettings(
    max_output_lines=12,
    max_output_bytes=700,
    max_line_length=300,
    tool_output_limits={"read": 600, "default": 500},
    prune_protect_tokens=150,
    prune_minimum_tokens=120,
    prune_output_retain_chars=100,
    default_max_output_tokens=100,
    default_context_window=9_000,
    spill_directory="spill",
)


# ── each setting and each word matters ───────────────────────────────────────────────────


OUTPUTS = (
    ("bash", "a line of twenty-five c\n" * 19),  # lines
    ("read", ("猫" * 40 + "\n") * 12),  # bytes
    ("read", "x" * 550),  # the length of a line
    ("read", ("x" * 100 + "\n") * 10),  # characters, by tool
    ("other", ("x" * 100 + "\n") * 10),  # and of all others
    ("list", "short"),
)
PRESSURES = ((860, 1_000), (840, 1_000), (420, 500), (149, 100), (150, 100))


def outcome(built):
    """What the preset makes of outputs, of a full window and of a whole conversation."""
    shown = [truncate_output(text, tool, built) for tool, text in OUTPUTS]
    messages = [{"role": "user", "content": "Go."}]
    for number in range(8):
        messages += [
            call(number, "write", {"text": "y" * 300}),
            result(number, "x" * 400),
        ]
    on_and_on = replace(
        built, prune_minimum_tokens=5 * built.prune_minimum_tokens
    )
    pruned = [
        prune_messages(messages, held, limit, built)
        for held, limit in PRESSURES
    ]
    pruned.append(prune_messages(messages, 1_000, 1_000, on_and_on))
    asked = Asked(built)
    for number in range(3):
        asked.tool("a line of twenty-five c\n" * 30 + str(number))
    cut = asked.shown()
    asked.messages += [
        {"role": "user", "content": words(20_000)},
        {"role": "assistant", "content": words(60_000)},
        {"role": "user", "content": "And now?"},
    ]
    asked.fit()
    return shown, pruned, cut, asked.view, asked.session.window.context_tokens


SETTINGS = {
    "max_output_lines": 11,
    "max_output_bytes": 600,
    "max_line_length": 200,
    "tool_output_limits": {"read": 590, "default": 490},
    "enable_disk_spillover": False,
    "spill_directory": "elsewhere",
    "prune_protect_tokens": 160,
    "prune_minimum_tokens": 60,
    "prune_output_retain_chars": 90,
    "prune_threshold": 0.87,
    "default_context_window": 8_000,
    "default_max_output_tokens": 70,
}
LAYER_3 = {"compaction_threshold", "compaction_target_percent"}
"""Read and checked, and used by nobody until there is a third layer."""

PARTS = {
    "_ELLIPSIS": "…",
    "_NOTICE": "---\n[Cut: {lines} → {kept_lines} lines, {size} → {kept_size}]\n",
    "_SPILLED": "[Saved to: {path}]\n",
    "_PRUNED": "[Pruned: kept {retain_chars}]",
    "head_lines": lambda *_, **__: None,
    "truncate": lambda *_, **__: (),
    "prune": lambda *_, **__: (),
    "rough_over": lambda *_, **__: None,
    "newest_rough": lambda window, **_: (window.size, 0),
    "results_only": lambda window, protected: results_only(window, protected)[
        ::-1
    ],
    "rough_won": lambda *_, **__: 0,
    "head_and_marker": lambda *_, **__: None,
    "emergency": lambda *_, **__: (),
}


@pytest.fixture
def expected(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    made = outcome(BASE)
    assert outcome(BASE) == made
    return made


@pytest.mark.parametrize("name", SETTINGS)
def test_a_changed_setting_is_noticed(name, expected):
    assert outcome(replace(BASE, **{name: SETTINGS[name]})) != expected


def test_every_setting_is_changed_above():
    assert SETTINGS.keys() | LAYER_3 == set(
        ThreeLayerSettings.__struct_fields__
    )


@pytest.mark.parametrize("name", PARTS)
def test_a_changed_word_or_stage_is_noticed(name, expected, monkeypatch):
    assert hasattr(MODULE, name)
    monkeypatch.setattr(MODULE, name, PARTS[name])
    try:
        changed = outcome(BASE)
    except OverLimitError:
        changed = "it does not fit any more"
    assert changed != expected


# ── bad input ────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("values", "key"),
    [
        ({"MaxOutputLines": 0}, "MaxOutputLines"),
        ({"MaxOutputBytes": -1}, "MaxOutputBytes"),
        ({"MaxLineLength": 0}, "MaxLineLength"),
        ({"PruneProtectTokens": -1}, "PruneProtectTokens"),
        ({"PruneMinimumTokens": 0}, "PruneMinimumTokens"),
        ({"PruneOutputRetainChars": -5}, "PruneOutputRetainChars"),
        ({"PruneThreshold": 0}, "PruneThreshold"),
        ({"PruneThreshold": 1.5}, "PruneThreshold"),
        ({"CompactionThreshold": 90}, "CompactionThreshold"),
        ({"CompactionTargetPercent": 0}, "CompactionTargetPercent"),
        (
            {"CompactionThreshold": 0.4, "CompactionTargetPercent": 50},
            "not under",
        ),
        ({"DefaultContextWindow": 0}, "DefaultContextWindow"),
        ({"SpillDirectory": " "}, "SpillDirectory"),
        ({"ToolOutputLimits": {"bash": -1}}, "ToolOutputLimits.bash"),
        ({"ToolOutputLimits": {"bash": "much"}}, "ToolOutputLimits"),
        ({"ToolOutputLimits": 7}, "ToolOutputLimits"),
        ({"MaxOutputLines": "2000"}, "MaxOutputLines"),
        ({"MaxOutputLines": None}, "MaxOutputLines"),
        ({"EnableDiskSpillover": "yes"}, "EnableDiskSpillover"),
        ({"MaxOutputLine": 2_000}, "The keys are MaxOutputLines"),
        ({"max_output_lines": 2_000}, "The keys are MaxOutputLines"),
    ],
)
def test_a_setting_that_cannot_be_meant_is_told_of_by_its_key(values, key):
    with pytest.raises(ConfigError, match=key):
        load("three_layer", {"TokenManagement": values})


@pytest.mark.parametrize(
    "values",
    [
        {"max_output_lines": "2000"},
        {"max_output_lines": 10.5},
        {"max_output_bytes": None},
        {"tool_output_limits": {"bash": b"1"}},
        {"prune_threshold": float("nan")},
        {"spill_directory": 7},
    ],
)
def test_a_wrong_type_by_python_name_is_the_same_error(values):
    with pytest.raises(ConfigError):
        ThreeLayerSettings(**values)


@pytest.mark.parametrize(
    "text", ["{", "[]", '{"TokenManagement": []}', "\ud83d"]
)
def test_a_file_that_is_none_is_told_of(tmp_path, text):
    file = tmp_path / "appsettings.json"
    file.write_bytes(text.encode("utf-8", "surrogatepass"))
    with pytest.raises(ConfigError):
        load("three_layer", file)


@pytest.mark.parametrize(
    "output", [None, b"bytes", 7, ["list"], iter("generator")]
)
def test_an_output_that_is_no_text_is_a_typed_error(output):
    with pytest.raises(FormatError, match="expected text"):
        truncate_output(output, "bash")
    with pytest.raises(FormatError):
        prune_messages(
            [call(1), {**result(1, ""), "content": output}, 7], 10**6, 1_000
        )


@pytest.mark.parametrize(
    "output",
    [
        "\ud83d" * 60_000,
        "\x00" * 60_000,
        "one\r\ntwo\r\n" * 4_000,
        "👩‍👩‍👧" * 9_000,
        "e\u0301" * 30_000,
        "\n" * 60_000,
        "x" * 5_000_000,
    ],
    ids=["surrogates", "nuls", "crlf", "families", "accents", "feeds", "huge"],
)
def test_any_text_is_shown_whole_or_comes_back_whole(output, tmp_path):
    told = truncate_output(output, "bash", spill_directory=tmp_path)
    assert told.was_truncated or told.ref
    body = told.output.partition("\n\n---\n")[0].split("... (line truncated)")[
        0
    ]
    assert output.startswith(body)
    assert not body.endswith("\u200d")
    assert retrieve_spilled(told.spill_path) == output
    asked = Asked(policy="three_layer").tool(output)
    opened = {}
    reading.reachable(asked.session, asked.shown(), opened)
    assert output in opened.values()


@pytest.mark.parametrize(
    ("chars", "pruned"), [(2_001, 0), (2_084, 0), (2_100, 1)]
)
def test_an_output_that_would_not_get_shorter_stays_whole(chars, pruned):
    output = "\n".join(["x"] * 2_001)
    assert truncate_output(output, "bash").output is output
    newest = [
        call(2),
        result(2, words(159_990)),
    ]  # nothing else is protected beside it
    told = prune_messages(
        [call(1), result(1, "x" * chars), *newest], 10**6, 10**6
    )
    assert told.parts_pruned == pruned


@pytest.mark.parametrize("format", sorted(FORMATS))
def test_it_prunes_in_every_format(format):
    turns = [
        histories.Turn(
            calls=(histories.Call("bash", "a", words(40_000, f"{n}")),)
        )
        for n in range(8)
    ]
    messages = histories.wire(format, turns)
    told = prune_messages(messages, 128_000, 128_000, format=format)
    assert not problems_of(format, list(told.pruned_parts))
    assert told.parts_pruned == 3
    texts = [
        text
        for m in told.pruned_parts
        for _, found in reading.results(m)
        for text in found
    ]
    assert [
        text.endswith("[Output pruned: kept first 2000 chars]")
        for text in texts
    ] == ([True] * 3 + [False] * 5)
    with pytest.raises(ConfigError, match="format"):
        prune_messages(messages, 1, 1, format="cobol")


# ── the gates ────────────────────────────────────────────────────────────────────────────

TIGHT = ThreeLayerSettings(
    max_output_lines=60,
    max_output_bytes=4_000,
    max_line_length=200,
    tool_output_limits={"grep": 900, "default": 3_000},
    prune_protect_tokens=400,
    prune_minimum_tokens=900,
    prune_output_retain_chars=120,
)
formats = st.sampled_from(sorted(FORMATS))
windows = st.sampled_from((4_000, 6_000, 12_000))


def new_session(format, window):
    limits = Limits(window_tokens=window)
    model, policy = histories.MODEL[format], three_layer(TIGHT)
    return Session(
        model, policy=policy, format=format, limits=limits, recall=True
    )


def lengths(format, messages):
    roles = [FORMATS[format].parse(message, "").role for message in messages]
    speaks = [
        n
        for n in range(1, len(roles))
        if roles[n] == "assistant" and roles[n - 1] != "assistant"
    ]
    return [*speaks, len(messages)]


@given(formats, windows, histories.histories, st.booleans())
def test_every_view_is_legal_fits_is_reproducible_and_loses_nothing(
    format, window, turns, reuse
):
    """G1, G2 (the guard), G3 and G4."""
    messages = histories.wire(format, turns, reuse_ids=reuse)
    warm, wire = new_session(format, window), FORMATS[format]
    for length in lengths(format, messages):
        request = histories.request(format, messages[:length])
        view = warm.fit(request)
        assert not problems_of(format, wire.history(view))
        assert warm.window.estimate <= warm.window.limit_tokens
        assert new_session(format, window).fit(request) == view
    texts, opened = list(reading.visible(wire.history(view))), {}
    reading.reachable(warm, texts, opened)
    reachable, shown = {*texts, *opened.values()}, "\n".join(texts)
    for message in messages:
        for _, found in reading.results(message):
            assert all(
                t in reachable or (len(t) <= 80 and t in shown) for t in found
            )


@pytest.mark.parametrize("format", sorted(FORMATS))
def test_the_layer_says_when_it_acts(format):
    """What the model said cannot be pruned: only a compaction brings it under the limit."""
    said = json.dumps(["what the model said"] * 400)
    turns = [
        histories.Turn(user="Go on." if n else None, said=said)
        for n in range(8)
    ]
    messages = histories.wire(format, turns)
    session = new_session(format, 6_000)
    view = FORMATS[format].history(
        session.fit(histories.request(format, messages))
    )
    assert "compacted" in {event.kind for event in session.events}
    assert session.window.estimate <= session.window.limit_tokens
    assert not problems_of(format, view)
