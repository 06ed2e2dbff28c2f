"""The linter of words: what it reads, and what it finds there."""

from pathlib import Path

import pytest

from lab.words import ROOT, files_in, problems_in, read_by_people

PROGRAM = '''
"""What came of it."""

def public(mends):
    """Say a thing.

    Args:
        mends: whether `mended` stays all the same.
    """
    # told of in a comment
    raise ValueError(f"Mend it, {mends}: " "a mistake "
                     "of ours.")

def _private():
    """Whose it is."""
    return {"mended": 1}
'''
SCRIPT = """// mended in a comment
const mended = "it is told of"; /* came
of it */
tell(`a recieved ${mended}
and mended`);
"""
TAGGED = "<p class='mended'>what is\nmended</p>"
PAGE = "A recieved request is told of.\n\n```python\nmended = `mend`\n```\n"


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "page.md").write_text(PAGE)
    (tmp_path / "program.py").write_text(PROGRAM)
    (tmp_path / "page.js").write_text(SCRIPT)
    (tmp_path / "page.html").write_text(TAGGED)
    return tmp_path


def test_phrases_and_misspellings_are_found_where_people_read(folder):
    pytest.importorskip("codespell_lib", reason="codespell is not installed")
    problems = problems_in(folder, [Path("page.md"), Path("program.py")])
    assert sorted(problems) == [
        "page.md:1: recieved ==> received",
        "page.md:1: told of ==> reported",
        "program.py:11: Mend ==> Repair",
        "program.py:11: mistake of ours ==> bug in ullage",
        "program.py:2: came of it ==> the outcome",
        "program.py:8: all the same ==> anyway",
    ]


def test_what_a_page_shows_is_read_and_its_code_is_not(folder):
    pytest.importorskip("codespell_lib", reason="codespell is not installed")
    problems = problems_in(folder, [Path("page.js"), Path("page.html")])
    assert sorted(problems) == [
        "page.html:2: mended ==> repaired",
        "page.js:2: told of ==> reported",
        "page.js:4: recieved ==> received",
        "page.js:5: mended ==> repaired",
    ]


def test_texts_for_models_are_left_alone():
    shown = read_by_people(PROGRAM, is_for_models=True)
    assert "came of it" in shown
    assert "Mend" not in shown


def test_what_users_and_contributors_read_is_among_the_files():
    names = {name.as_posix() for name in files_in(ROOT)}
    assert {"README.md", "docs/proxy.md", "examples/loop_openai.py"} <= names
    assert "src/ullage/tools/cli/run.py" in names
    assert "src/ullage/tools/replay/report/page.js" in names
    assert not any(name.startswith("docs/documents/") for name in names)
