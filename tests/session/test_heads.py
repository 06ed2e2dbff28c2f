"""Fingerprints of heads: what changed is found by the text where it is there, and without."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import histories
from ullage import Session
from ullage.core.values.texts import common_chars
from ullage.session.prompt_cache.heads import (
    HeadPrint,
    changed_head,
    head_print,
    is_same_head,
    system_text,
)

SYSTEM = "Never touch main. " * 900


def header_of(request, format=None):
    session = Session("gpt-4.1", format=format)
    return session.fit(request).sent.raw.header


def claude(system=SYSTEM, tools=(), **more):
    return header_of(
        {
            "model": "claude-sonnet-4-5",
            "max_tokens": 9,
            "system": system,
            "messages": [{"role": "user", "content": "Go."}],
            "tools": [
                {"name": name, "input_schema": {"type": "object"}}
                for name in tools
            ],
            **more,
        }
    )


def print_of(header, recall=b""):
    return head_print(header, recall, header[4].model)


@given(st.integers(0, len(SYSTEM) - 1))
def test_where_both_texts_are_at_hand_the_character_is_named(place):
    changed = SYSTEM[:place] + "\0" + SYSTEM[place + 1 :]
    assert common_chars(SYSTEM, changed) == place
    earlier, later = HeadPrint("m", marks=b"1"), HeadPrint("m", marks=b"2")
    change = changed_head(earlier, later, (SYSTEM, changed))
    assert change.place == f"at character {place + 1:,}"


@pytest.mark.parametrize("place", [0, 255, 256, 1_203, 16_199])
def test_by_the_fingerprints_alone_the_piece_is_named(place):
    system = SYSTEM[:place] + "!" + SYSTEM[place + 1 :]
    change = changed_head(print_of(claude()), print_of(claude(system=system)))
    assert change.cause == "system"
    start, stop = (
        int(word.replace(",", ""))
        for word in change.place.split()
        if word[0].isdigit()
    )
    assert start <= place + 1 <= stop
    assert stop - start < 300


def test_tools_that_came_went_and_changed_are_named():
    earlier, later = (
        print_of(claude(tools=tools))
        for tools in (("a", "b"), ("b", "c", "d", "e", "f"))
    )
    change = changed_head(earlier, later)
    assert change.cause == "tools"
    assert change.place == "(`c`, `d`, `e` and 1 more added, `a` removed)"
    turned = changed_head(
        print_of(claude(tools=("a", "b"))), print_of(claude(tools=("b", "a")))
    )
    assert turned.place == "(another order)"


@pytest.mark.parametrize(
    ("field", "value", "cause"),
    [
        ("thinking", {"type": "enabled", "budget_tokens": 1_024}, "thinking"),
        ("tool_choice", {"type": "any"}, "settings"),
    ],
)
def test_settings_that_are_part_of_a_prompt_are_named(field, value, cause):
    earlier, later = claude(tools="a"), claude(tools="a", **{field: value})
    assert not is_same_head(earlier, later)
    change = changed_head(print_of(earlier), print_of(later))
    assert change.cause == cause
    assert field in change.place


def test_gemini_has_its_settings_within_others():
    request = histories.request("gemini", [histories.user("gemini", "Go.")])
    thinking = {"thinkingConfig": {"thinkingBudget": 9}}
    names = [
        name
        for field in ("generationConfig", "config")
        for name, _ in print_of(
            header_of({**request, field: thinking}, "gemini")
        ).settings
    ]
    assert names == ["thinkingConfig", "thinkingConfig"]


def test_what_changes_from_turn_to_turn_is_no_part_of_it():
    other = claude(max_tokens=7, metadata={"user_id": "x"})
    assert is_same_head(claude(), other)
    assert print_of(claude()) == print_of(other)


@pytest.mark.parametrize("format", sorted(histories.MODEL))
def test_it_holds_no_text_of_a_system_prompt_of_any_wire(format):
    request = histories.request(format, [histories.user(format, "Go.")])
    header = header_of(request, format)
    print_ = print_of(header)
    assert isinstance(system_text(header), str)
    assert len(print_.marks) <= 256
    assert not [v for v in print_.settings if len(v[1]) != 4]
