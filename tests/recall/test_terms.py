import pytest
from hypothesis import given
from hypothesis import strategies as st

from ullage.session.recall.terms import Splitter, count_words


def terms(text):
    return list(Splitter().terms(text))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("getUserName", ["getusername", "get", "user", "name"]),
        ("read_on_23", ["read_on_23", "read", "on", "23"]),
        ("src/tide_log.py", ["src", "tide_log", "tide", "log", "py"]),
        ("HTTPServer2", ["httpserver2", "http", "server"]),
        ("sha256", ["sha256", "sha", "256"]),
        ("GATE gate", ["gate", "gate"]),
        ("Größe überAll", ["größe", "überall", "über", "all"]),
        ("潮水涨了", ["潮水", "水涨", "涨了"]),
        ("潮", ["潮"]),
        ("log潮水", ["log", "潮水"]),
        ("a = 1", []),
        ("", []),
    ],
)
def test_a_word_counts_whole_and_by_its_parts(text, expected):
    assert terms(text) == expected


def test_a_word_that_is_no_name_counts_by_its_parts_alone():
    assert terms("A1" * 40) == []
    assert terms("tide_" * 20) == ["tide"]


@given(st.text(max_size=80), st.text(max_size=80))
def test_what_is_parted_by_a_line_end_is_parted(one, other):
    assert terms(f"{one}\n{other}") == terms(one) + terms(other)


@given(st.from_regex(r"[a-zA-Z]{2,9}(_[a-zA-Z]{2,9}){0,3}", fullmatch=True))
def test_a_query_in_other_letters_finds_the_identifier(name):
    assert name.lower() in terms(name)
    assert set(terms(name.lower())) & set(terms(name))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", 0),
        ("SKU-10088", 1),
        ("price of SKU-10088", 3),
        ("潮水", 1),
        ("潮水涨了多少", 3),
        ("SKU-10088 的价格", 3),
    ],
)
def test_the_words_of_a_query_are_counted_in_any_script(text, words):
    assert count_words(text) == words
