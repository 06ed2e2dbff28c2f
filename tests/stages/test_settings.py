"""Settings as text: the same in every process, or refused by name."""

import dataclasses
import enum
import io
import re
import threading
from decimal import Decimal
from functools import lru_cache, partial
from pathlib import PurePosixPath

import msgspec
import pytest

from ullage import ConfigError, Policy, Session
from ullage.core.contract.settings import written
from ullage.core.history.measures import Measure
from ullage.core.values.notices import Words
from ullage.policy.stages.truncate import by_kind, truncate


class Frozen(msgspec.Struct, frozen=True):
    lines: int


class Thawed(msgspec.Struct):
    lines: int


@dataclasses.dataclass(frozen=True, slots=True)
class FrozenData:
    lines: int


@dataclasses.dataclass
class ThawedData:
    lines: int


class Slots:
    __slots__ = ("lines",)

    def __init__(self, lines):
        self.lines = lines

    def __call__(self, text):
        return text[: self.lines]


class Object:
    def __init__(self, lines):
        self.lines = lines

    def stage(self, window, /):
        return ()


class Color(enum.Enum):
    RED = 1
    BLUE = 2


def own(window, /, *, setting=0):
    return ()


def text(value):
    return written(value, "setting").text


def capturing(value):
    return lambda window, /: value


@lru_cache(maxsize=4)
def cached(number, more=3):
    return number + more


CHANGES = [
    (1, 2),
    (True, 1),
    ("a", "b"),
    (b"a", "a"),
    (0.5, 0.25),
    (None, ()),
    ({"a": 1}, {"a": 2}),
    (frozenset("ab"), frozenset("ac")),
    ([1, 2], [2, 1]),
    (Decimal("0.1"), Decimal("0.10")),
    (re.compile("a"), re.compile("a", re.IGNORECASE)),
    (PurePosixPath("a"), PurePosixPath("b")),
    (Color.RED, Color.BLUE),
    (Frozen(1), Frozen(2)),
    (FrozenData(1), FrozenData(2)),
    (range(3), range(4)),
    (capturing(1), capturing(2)),
    (capturing({"a": (1,)}), capturing({"a": (2,)})),
    (partial(own, setting=1), partial(own, setting=2)),
    (
        partial(own, setting=partial(own, setting=1)),
        partial(own, setting=partial(own, setting=2)),
    ),
    (partial(print, "a"), partial(print, "b")),
    (Measure("mine", own, n=1), Measure("mine", own, n=2)),
    (Words(recall=False), Words()),
    (str.upper, str.lower),
    ("a".join, "b".join),
    (re.compile("a").sub, re.compile("b").sub),
    (cached, partial(cached, more=4)),
    (Frozen, FrozenData),
]


@pytest.mark.parametrize(
    ("one", "other"), CHANGES, ids=lambda value: type(value).__name__
)
def test_every_kind_of_setting_is_told_from_another_of_its_kind(one, other):
    assert text(one) == text(one) != text(other)
    assert " at 0x" not in text(one) + text(other)
    assert text({"setting": one}) != text({"setting": other})


@pytest.mark.parametrize(
    "value",
    [
        Thawed(1),
        ThawedData(1),
        Slots(1),
        Object(1),
        io.StringIO("a"),
        threading.Lock(),
        re,
        iter(""),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_no_other_process_knows_is_refused_by_name_when_the_session_is_made(
    value,
):
    for stage, setting in (
        (partial(own, setting=value), "setting of own"),
        (partial(own, setting=(1, {"of": value})), "of"),
        (capturing(value), "value of <lambda>"),
    ):
        for moment in ("on_arrival", "under_pressure"):
            policy = Policy(name="mine-1", **{moment: (stage,)})
            with pytest.raises(
                ConfigError, match=type(value).__name__
            ) as refused:
                Session("gpt-4.1", policy=policy)
            assert refused.value.setting == setting
            assert " at 0x" not in str(refused.value)


def test_a_stage_that_is_a_method_is_refused_for_what_it_is_bound_to():
    with pytest.raises(ConfigError, match="a Object is nothing") as refused:
        Session(
            "gpt-4.1",
            policy=Policy(name="mine-1", on_arrival=(Object(1).stage,)),
        )
    assert refused.value.setting == "self of stage"


def test_a_variable_that_has_no_value_yet_is_refused_by_name():
    def stage(window, /):
        return later

    with pytest.raises(ConfigError, match="no value yet") as refused:
        Session(
            "gpt-4.1", policy=Policy(name="mine-1", under_pressure=(stage,))
        )
    assert refused.value.setting == "later of stage"
    later = ()
    Session("gpt-4.1", policy=Policy(name="mine-1", under_pressure=(stage,)))


def test_order_counts_where_it_decides_and_nowhere_else():
    limits = {"shell": 1, "web": 2, "other": 3, "search": 4, "read": 5}
    backwards = dict(reversed(limits.items()))
    usual = partial(truncate, shape=partial(by_kind, limit_chars=limits))
    assert text(usual) == text(
        partial(truncate, shape=partial(by_kind, limit_chars=backwards))
    )
    assert text((truncate, usual)) != text((usual, truncate))
    assert text({"b", "a"}) == text({"a", "b"})


def test_a_default_is_a_setting_whether_it_is_given_or_not():
    assert (
        text(partial(truncate))
        == text(truncate)
        == text(partial(truncate, shape=by_kind))
    )
    assert text(partial(own, setting=0)) == text(own)
    assert text(partial(partial(own, setting=1), setting=0)) == text(own)


def test_ours_have_no_module_and_where_they_show_what_they_are_no_name():
    assert text(truncate).startswith("truncate(")
    assert written(truncate, "stage", names_ours=False).text.startswith(
        "ours("
    )
    assert written(truncate, "stage").is_ours
    for stage in (
        own,
        partial(truncate, shape=own),
        partial(truncate, shape=Frozen(1)),
    ):
        assert not written(stage, "stage").is_ours
        assert __name__ in written(stage, "stage", names_ours=False).text


def test_a_function_made_in_a_comprehension_has_one_name_on_every_python():
    (made,) = [lambda window, /, number=number: number for number in range(1)]
    assert "comp>" not in text(made)
    assert "<lambda>" in text(made)


def test_a_value_that_holds_itself_is_written_once():
    itself = [1]
    itself.append(itself)
    assert text(itself) == "[1, …]"
