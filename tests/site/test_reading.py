"""The user's pages can be read: how many, how long, in which sentences; `llms.txt` lists them."""

import re
import statistics
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
NAV = tomllib.loads((ROOT / "zensical.toml").read_text(encoding="utf-8"))[
    "project"
]["nav"]
DEPTH = "In depth"
MOST_PAGES, MOST_WORDS = 25, 25_000
MOST_SENTENCE_WORDS, MEDIAN_SENTENCE_WORDS = 35, 16
_HIDDEN = re.compile(r"(?s)<!--.*?-->|^ *```.*?^ *```", re.MULTILINE)
_ITEM = re.compile(r"(?m)^\s*(?:[-*]|\d+\.)\s+")
_LINK, _CODE = re.compile(r"\[([^\]]*)\]\([^)]*\)"), re.compile(r"`[^`]*`")
_END = re.compile(r"(?<=[.!?:;])\s+(?=[A-Z*X0-9(\"]|ullage\b)")


def pages_in(entries):
    for entry in entries:
        for title, page in entry.items():
            yield from (
                pages_in(page) if isinstance(page, list) else [(title, page)]
            )


USERS = [*pages_in(entry for entry in NAV if DEPTH not in entry)]


def read(page):
    return (DOCS / page).read_text(encoding="utf-8")


def sentences(text):
    """The sentences of a page, without code, tables, headings and links' addresses."""
    for block in re.split(r"\n\s*\n", _HIDDEN.sub("", text)):
        if block.lstrip().startswith(("|", "#", "!", ":::", "    ")):
            continue
        for item in _ITEM.split(block):
            line = _CODE.sub("X", _LINK.sub(r"\1", " ".join(item.split())))
            yield from (
                sentence
                for sentence in _END.split(line)
                if len(sentence.split()) > 2
            )


def test_there_are_few_pages_and_they_are_short():
    assert len(USERS) <= MOST_PAGES
    words = sum(len(read(page).split()) for _, page in USERS)
    assert words <= MOST_WORDS, f"{words:,} words"


def test_a_sentence_has_one_idea():
    found = [
        sentence for _, page in USERS for sentence in sentences(read(page))
    ]
    lengths = [len(sentence.split()) for sentence in found]
    assert statistics.median(lengths) <= MEDIAN_SENTENCE_WORDS
    assert [
        text for text in found if len(text.split()) > MOST_SENTENCE_WORDS
    ] == []


def test_llms_txt_lists_the_users_pages():
    lines = read("llms.txt").splitlines()
    listed = re.findall(
        r"^- \[(.+?)\]\((.+?)\)", "\n".join(lines), re.MULTILINE
    )
    assert listed == USERS
