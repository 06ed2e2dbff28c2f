"""Which values of a call count as atoms."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ullage.tools.replay.evidence.atoms import (
    Atom,
    atoms_in,
    atoms_of,
    leaves,
    plain,
    tokens_in,
)


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


@pytest.mark.parametrize(
    ("command", "found"),
    [
        ("git diff {one_name..two_name}", {"one_name", "two_name"}),
        ("ls ~/.profile_x **/lib/a_b.py", {"~/.profile_x", "lib/a_b.py"}),
        ("ls ../lib/a_b.py ./lib/c_d.py", {"lib/a_b.py", "lib/c_d.py"}),
        (r"grep '\bto_find\b'", {"to_find"}),
        (r'printf "%s\nto_find"', {"to_find"}),
        ("// see `.order_by`, </first_name>", {"order_by", "first_name"}),
        ("$ sed -n 10,999p; [Y/n] 0/3", set()),
        ("on 2024-05-11: 0.27.0, 12.5%", {"2024-05-11", "0.27.0", "12.5"}),
        ("mail to: ann.lee@example.org", {"ann.lee@example.org"}),
        ("(https://x.org/a_(b),c).", {"https://x.org/a_(b),c"}),
    ],
)
def test_a_command_is_split_where_its_tokens_end(command, found):
    of_command = kinds(x=command).items()
    assert {text for text, kind in of_command if kind != "literal"} == found


def test_what_stands_in_quotes_may_hold_the_other_quotes():
    assert kinds(x="""say: "it's 'it'!\"""") == {"it's 'it'!": "literal"}


@pytest.mark.parametrize(
    "value", ["main", "reading", "12", "x_1", "...", "", "--", "a/", "Python"]
)
def test_what_any_text_may_hold_is_none(value):
    assert kinds(x=value) == {}


def test_the_old_text_of_an_edit_is_wanted_whole():
    old = "def total(self):\n    return self.rows"
    found = kinds(path="a/b.py", old_string=old, new_string="pass")
    assert found == {"a/b.py": "path", old: "quote", "self.rows": "identifier"}


def test_what_a_search_replaces_is_old_text_too():
    assert kinds(search="first_value", replace="") == {"first_value": "quote"}
    assert kinds(search="first_value") == {"first_value": "identifier"}
    assert kinds(old_path="first_value", old_string="a = 1") == {
        "first_value": "identifier"
    }


def test_numbers_and_switches_are_no_strings():
    assert kinds(limit=20_000, deep=True, of=[{"name": "order_17"}]) == {
        "order_17": "identifier"
    }


def test_the_plain_input_of_a_custom_tool_is_one_string():
    assert list(leaves("*** begin {")) == [("", "*** begin {")]


@given(st.text())
def test_any_text_is_read(text):
    assert atoms_of(text) == atoms_of(text)
    assert all(atom.text for atom in atoms_in(plain(text)))


@given(
    st.lists(
        st.sampled_from(
            ("src/a_b.py", "user_id", "'some words'", "12345", "..", "://")
        )
    )
)
def test_every_atom_of_a_text_is_among_its_tokens(parts):
    text = " ".join(parts)
    assert {atom.text for atom in atoms_in(text)} <= tokens_in(text)


def test_a_url_is_one_value():
    assert list(atoms_in("see https://x.org/a_b/c.")) == [
        Atom("https://x.org/a_b/c", "path")
    ]
