"""Which values of a call count as atoms."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ullage.replay.evidence.atoms import atoms_in, atoms_of, leaves, tokens_in
from ullage.replay.evidence.texts import Atom, plain


def kinds(**arguments):
    return {atom.text: atom.kind for atom in atoms_of(json.dumps(arguments))}


def test_a_shell_command_is_split_into_its_values():
    command = "cd /repo && grep -rn 'TokenBudget(' ./src/limits.py | head -20; git show 4beca02"
    assert kinds(command=command) == {
        "/repo": "path",
        "TokenBudget(": "literal",
        "TokenBudget": "identifier",
        "src/limits.py": "path",
        "4beca02": "hash",
    }


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ("https://example.org/a/b?c=1", "path"),
        ("0d3f7a52-9c1b-4e8e-8a53-0123456789ab", "hash"),
        ("user_id", "identifier"),
        ("getUser", "identifier"),
        ("liam_khan_2521", "identifier"),
        ("20260", "number"),
        ("3.25", "number"),
        ("250ms", "number"),
        ("Emma Kim", "literal"),
    ],
)
def test_a_value_is_known_by_what_it_looks_like(value, kind):
    assert kinds(x=value) == {value: kind}


@pytest.mark.parametrize("value", ["main", "reading", "12", "x_1", "...", "", "--", "a/", "Python"])
def test_what_any_text_may_hold_is_none(value):
    assert kinds(x=value) == {}


def test_the_old_text_of_an_edit_is_wanted_whole():
    old = "def total(self):\n    return self.rows"
    found = kinds(path="a/b.py", old_string=old, new_string="pass")
    assert found == {"a/b.py": "path", old: "quote", "self.rows": "identifier"}


def test_numbers_and_switches_are_no_strings():
    assert kinds(limit=20_000, deep=True, of=[{"name": "order_17"}]) == {"order_17": "identifier"}


def test_the_plain_input_of_a_custom_tool_is_one_string():
    assert list(leaves("*** begin {")) == [("", "*** begin {")]


@given(st.text())
def test_any_text_is_read(text):
    assert atoms_of(text) == atoms_of(text)
    assert all(atom.text for atom in atoms_in(plain(text)))


@given(st.lists(st.sampled_from(("src/a_b.py", "user_id", "'some words'", "12345", "..", "://"))))
def test_every_atom_of_a_text_is_among_its_tokens(parts):
    text = " ".join(parts)
    assert {atom.text for atom in atoms_in(text)} <= tokens_in(text)


def test_a_url_is_one_value():
    assert list(atoms_in("see https://x.org/a_b/c.")) == [Atom("https://x.org/a_b/c", "path")]
