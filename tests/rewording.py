"""A version of ullage in which one word of a notice, a record or an account is another one."""

from types import CodeType

from ullage.core.history import index
from ullage.core.history.remembered import REMEMBERED
from ullage.core.values import notices
from ullage.core.values.notices import Words
from ullage.policy.stages import (
    account,
    fingerprints,
    quotes,
    record,
    shorten,
    summary,
    user_texts,
)

ON_ARRIVAL, UNDER_PRESSURE = "on arrival", "under pressure"
WORDS = (
    (Words.cut, "characters shown", "characters displayed", ON_ARRIVAL),
    (Words._search, "search it: with", "search in it: with", ON_ARRIVAL),
    (Words.reshaped, "left out where", "missing where", ON_ARRIVAL),
    ((notices, "_AS_ROWS"), "like objects", "alike objects", ON_ARRIVAL),
    (Words.read_on, ", offset=", ", from=", ON_ARRIVAL),
    (Words.read_on, "from character", "from letter", ON_ARRIVAL),
    (notices.ref_line, "in all", "altogether", ON_ARRIVAL),
    (notices.aside, "was set aside", "was put aside", ON_ARRIVAL),
    ((notices, "NO_REASONING"), "left out", "omitted", ON_ARRIVAL),
    (shorten._lines, "characters left out", "characters omitted", ON_ARRIVAL),
    (shorten._lines, "that speak of errors", "with errors", ON_ARRIVAL),
    (Words.placeholder, "begins", "starts", UNDER_PRESSURE),
    (Words.record, "in short", "in brief", UNDER_PRESSURE),
    (Words.record, "opens likewise", "opens so", UNDER_PRESSURE),
    (Words.find_lines.fget, "find lines", "lines are found", UNDER_PRESSURE),
    (Words.aside, "set aside", "put aside", UNDER_PRESSURE),
    (Words.media, "See it again", "See it once more", UNDER_PRESSURE),
    (Words.arguments, "of arguments", "of an argument", UNDER_PRESSURE),
    ((fingerprints, "PAGE_GONE"), "has left", "left", UNDER_PRESSURE),
    (record._gave, "make the same call", "make this call", UNDER_PRESSURE),
    (record._gave, "characters, ref=", "letters, ref=", UNDER_PRESSURE),
    (
        record._read_by_program,
        "for the program",
        "for a program",
        UNDER_PRESSURE,
    ),
    (record._block, "a block", "one block", UNDER_PRESSURE),
    (record._answer, "error: ", "failed: ", UNDER_PRESSURE),
    (
        (record, "_ANSWERED"),
        "the user's answer",
        "the user's reply",
        UNDER_PRESSURE,
    ),
    (account.account, "are condensed here", "are told here", UNDER_PRESSURE),
    (index.index_of, "Index of messages", "List of messages", UNDER_PRESSURE),
    (account._bullet, "the user's answer", "the user's reply", UNDER_PRESSURE),
    (
        index._lines_by_ref,
        "the user answers",
        "the user replies",
        UNDER_PRESSURE,
    ),
    (summary.summary, "Files", "Paths", UNDER_PRESSURE),
    (
        (summary, "_THEN"),
        "the user said then",
        "the user then said",
        UNDER_PRESSURE,
    ),
    ((quotes, "_CUT"), "characters", "letters", UNDER_PRESSURE),
    (
        user_texts.opening,
        "What is left out",
        "What is missing",
        UNDER_PRESSURE,
    ),
)
"""A function or a name in a module, a word of it, another one, and where it is shown."""


def reword(monkeypatch, place, old, new):
    """Put another word in place of one, and forget what was worked out with the old one."""
    if isinstance(place, tuple):
        module, name = place
        before = getattr(module, name)
        after = before.replace(old, new)
        monkeypatch.setattr(module, name, after)
    else:
        before = place.__code__
        after = _with_word(before, old, new)
        monkeypatch.setattr(place, "__code__", after)
    assert before != after, f"no {old!r} is there"
    forget()


def forget():
    """Forget what this process worked out of texts and policies."""
    fingerprints._fingerprint.cache_clear()
    REMEMBERED.clear()


def _with_word(code, old, new):
    """The code of a function with another word in its texts."""
    constants = []
    for constant in code.co_consts:
        if isinstance(constant, str):
            constant = constant.replace(old, new)
        elif isinstance(constant, tuple):
            constant = tuple(
                each.replace(old, new) if isinstance(each, str) else each
                for each in constant
            )
        elif isinstance(constant, CodeType):
            constant = _with_word(constant, old, new)
        constants.append(constant)
    return code.replace(co_consts=tuple(constants))
