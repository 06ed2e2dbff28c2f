"""Whatever the chunks, a reader gives what it gives of the whole string."""

import tracemalloc
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.recall.at_hand import by_character, by_line, grep
from ullage.core.history.canon import ref_of
from ullage.core.values.effects import ChunkSize, Output, Shape
from ullage.core.values.notices import Words
from ullage.policy.stages.shorten import safe_cut
from ullage.session.drivers import run
from ullage.session.recall import grep as grep_module
from ullage.session.recall import source as source_module
from ullage.session.recall.grep import search
from ullage.session.recall.read import characters, lines
from ullage.session.recall.source import OutputReader
from ullage.stores import SqliteStore

REF = "0123456789abcdef"
WORDS = Words()
EDGES = (
    "a",
    "b c",
    "\n",
    "\n\n",
    "\r\n",
    "\r",
    "e\u0301",
    "👩‍👩‍👧",
    "🇩🇪🇫🇷",
    "\ud83d\ude00",
    "\ud800",
    "\x00",
    "é",
)
texts = st.builds(
    lambda some, times: "".join(some) * times,
    st.lists(st.sampled_from(EDGES), max_size=20),
    st.integers(1, 20),
)


class Chunked:
    """A store of one output whose chunks end where it is told; counts what is asked of it."""

    name = "chunked"

    def __init__(self, text, cuts):
        self.text = text
        places = sorted(
            {cut for cut in cuts if 0 < cut < len(text)} | {0, len(text)}
        )
        self.spans = list(pairwise(places))
        self.asked = []

    @property
    def source(self):
        extents = (
            ChunkSize.of(self.text[start:stop]) for start, stop in self.spans
        )
        return OutputReader(Shape(REF, "text", tuple(extents)))

    def chunk(self, tenant, ref, n):
        self.asked.append(n)
        start, stop = self.spans[n]
        return self.text[start:stop]

    def read(self, steps):
        return run(steps, self, "")


cuts = st.lists(st.integers(0, 400), max_size=12)


def plain_page(text, offset, page_chars):
    """A page as one would cut it from the whole string."""
    if offset >= len(text) > 0:
        return (
            f"[nothing after character {len(text):,}: the output ends there]"
        )
    stop = safe_cut(text, offset + page_chars)
    stop = stop if stop > offset else min(offset + page_chars, len(text))
    if stop >= len(text):
        return text[offset:]
    return f"{text[offset:stop]}\n{WORDS.more(REF, offset, stop, len(text))}"


@settings(max_examples=120, deadline=None)
@given(texts, cuts, st.integers(0, 500), st.integers(1, 300))
def test_a_page_of_characters_is_that_of_the_whole_string(
    text, cuts, offset, page_chars
):
    store = Chunked(text, cuts)
    page = store.read(characters(store.source, offset, WORDS, page_chars))
    assert page == plain_page(text, offset, page_chars)
    assert page == by_character(text, REF, offset, WORDS, page_chars)


@settings(max_examples=120, deadline=None)
@given(
    texts, cuts, st.integers(0, 60), st.integers(0, 30), st.integers(1, 300)
)
def test_a_page_of_lines_is_that_of_the_whole_string(
    text, cuts, offset, limit, page_chars
):
    store = Chunked(text, cuts)
    page = store.read(lines(store.source, offset, limit, WORDS, page_chars))
    assert page == by_line(text, REF, offset, limit, WORDS, page_chars)


PATTERNS = [
    "a",
    "^b",
    "b c$",
    "^$",
    "$",
    "x*",
    r"\r",
    r"\Aa",
    r"b\z",
    r"c\z|^a",
    r"\bb",
    "é",
    ".",
]


@settings(max_examples=150, deadline=None)
@given(
    texts,
    cuts,
    st.sampled_from(PATTERNS),
    st.integers(0, 3),
    st.integers(1, 5),
)
def test_a_search_finds_what_it_finds_in_the_whole_string(
    text, cuts, pattern, context, most
):
    store = Chunked(text, cuts)
    options = {"context_lines": context, "max_matches": most, "max_chars": 500}
    found = store.read(search(store.source, pattern, **options))
    assert found == grep(text, pattern, **options)


@settings(max_examples=80, deadline=None)
@given(
    st.text(st.sampled_from("ab\né"), max_size=300),
    st.sampled_from(["^a", "b$", "ab", "é"]),
)
def test_a_long_line_searched_in_parts_gives_the_same(text, pattern):
    whole = grep(text, pattern)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(grep_module, "LONG_CHARS", 12)
        patch.setattr(grep_module, "OVERLAP_CHARS", 5)
        patch.setattr(source_module, "PIECE_CHARS", 7)
        assert grep(text, pattern) == whole
        store = Chunked(text, range(0, 300, 4))
        assert store.read(search(store.source, pattern)) == whole


def test_only_the_chunks_needed_are_read():
    text = "".join(f"{n:07}\n" for n in range(100_000))
    store = Chunked(text, range(0, len(text), 10_000))
    store.read(characters(store.source, 404_000, WORDS, 1_000))
    assert store.asked == [40]
    store.asked.clear()
    store.read(lines(store.source, 50_001, 10, WORDS))
    assert set(store.asked) == {40}


def test_a_long_line_is_paged_without_reading_to_its_end():
    text = "x" * 1_000_000 + "\nlast"
    store = Chunked(text, range(0, len(text), 10_000))
    assert store.read(lines(store.source, 0, 1, WORDS)).startswith(
        "     1\t" + "x" * 2_000 + " [… 998,000"
    )
    assert set(store.asked) == {
        0,
        100,
    }  # its beginning, and the chunk in which it ends


def peak(work):
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


MB = 1_000_000


@pytest.mark.says(
    "output-cache-and-compaction",
    "1.10 TODO (future improvement)",
    "`tool_output_cache` read/grep supports streaming assuming huge output",
    lives="ullage.session.recall.source.OutputReader",
)
@pytest.mark.parametrize("size", [20 * MB, 60 * MB])
def test_memory_does_not_grow_with_an_output_in_a_file(tmp_path, size):
    """One line of so many megabytes, with something to find at its end."""
    text = "x" * size + " needle\nand no more"
    ref = ref_of(text)
    store = SqliteStore(tmp_path / "a.db")
    store.commit("", [Output(ref, text)], [])

    def source():
        return OutputReader(store.stat("", ref))

    def read():
        page = run(characters(source(), size // 2, WORDS), store, "")
        assert page.startswith("x" * 8_000)
        assert (
            run(lines(source(), 1, 5, WORDS), store, "")
            == "     2\tand no more"
        )
        found = run(search(source(), "n..dle$"), store, "")
        assert [(line.number, line.match) for line in found.lines] == [
            (1, size + 1)
        ]

    assert peak(read) < 25 * MB
    store.close()


def test_a_page_of_a_string_at_hand_copies_no_more_than_the_page():
    text = "0123456789abcdefghi\n" * (5 * MB)
    output = Output(REF, text)
    for steps in (
        lambda: by_character(output.text, REF, 50 * MB, WORDS),
        lambda: by_line(output.text, REF, 2 * MB, 100, WORDS),
    ):
        assert peak(steps) < MB
