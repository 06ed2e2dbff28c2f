"""Slash commands: written and removed without a loss, and what they run decides what was typed."""

import json
import os
import subprocess
import sys

import pytest

from tests.session.test_stored import talked
from ullage import SqliteStore
from ullage.session.stored.conversation import conversation
from ullage.tools.cli import commands
from ullage.tools.hand.commands import (
    END,
    FOLDERS,
    KEPT,
    MARK,
    VERBS,
    files_of,
    text_of,
)

PLACES = {
    "claude-code": ".claude/commands",
    "opencode": ".config/opencode/commands",
    "codex": ".codex/skills",
}


@pytest.fixture
def home(tmp_path):
    return tmp_path / "home"


def ullage(home, *words, typed="", **environment):
    """Run the command line at a home of its own."""
    home.mkdir(exist_ok=True)
    own = {"HOME": str(home), "PATH": os.environ["PATH"]}
    own["PYTHONPATH"] = os.pathsep.join(sys.path)
    return subprocess.run(
        [sys.executable, "-m", "ullage", *words],
        input=typed,
        capture_output=True,
        text=True,
        env=own | environment,
    )


def test_they_are_written_and_removed_and_what_was_there_comes_back(home):
    assert {*PLACES} == {*FOLDERS}
    for agent, place in PLACES.items():
        (home / place).mkdir(parents=True)
        (home / place / "mine.md").write_text("My own command.")
        pin = home / place / pin_of(agent)
        pin.parent.mkdir(exist_ok=True)
        pin.write_text(f"My own pin of {agent}.")
    dry = ullage(home, "commands", "install", "--dry-run")
    assert "keep what is there as" in dry.stdout
    assert len([*home.rglob("*.md")]) == 6
    for _ in range(2):  # a second time there is nothing to do
        done = ullage(home, "commands", "install", "--yes")
        assert done.returncode == 0, done.stderr
    assert "there is nothing to change" in done.stdout
    for agent, place in PLACES.items():
        kept = home / place / f"{pin_of(agent)}{KEPT}"
        assert kept.read_text() == f"My own pin of {agent}."
        for name, text in files_of(FOLDERS[agent], ()):
            ours = (home / place / name).read_text()
            assert MARK in ours
            assert len(ours) >= len(text)
    done = ullage(home, "commands", "uninstall", "--yes")
    assert done.returncode == 0, done.stderr
    for agent, place in PLACES.items():
        there = {p for p in (home / place).rglob("*") if p.is_file()}
        pin = home / place / pin_of(agent)
        assert there == {home / place / "mine.md", pin}
        assert pin.read_text() == f"My own pin of {agent}."


def pin_of(agent):
    return FOLDERS[agent].file.format(verb="pin")


def test_one_that_a_user_changed_stays(home):
    place = home / PLACES["opencode"]
    ullage(home, "commands", "install", "opencode", "--yes")
    (place / "ullage-drop.md").write_text("It is mine by now.")
    ullage(home, "commands", "uninstall", "opencode", "--yes")
    assert [path.name for path in place.iterdir()] == ["ullage-drop.md"]


def test_folders_that_a_variable_names_are_used(home, tmp_path):
    where = {
        "CLAUDE_CONFIG_DIR": str(tmp_path / "c"),
        "XDG_CONFIG_HOME": str(tmp_path / "x"),
        "CODEX_HOME": str(tmp_path / "d"),
    }
    ullage(home, "commands", "install", *PLACES, "--yes", **where)
    for place in ("c/commands", "x/opencode/commands", "d/skills"):
        assert len([*(tmp_path / place).iterdir()]) == len(VERBS)
    assert [*home.rglob("*.md")] == []


def test_of_agents_that_are_not_here_none_is_written(home):
    done = ullage(home, "commands", "install", "--yes")
    assert (done.returncode, done.stdout) == (0, "")
    assert [*home.iterdir()] == []


# What they run


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    path = tmp_path_factory.mktemp("kept") / "store.db"
    store = SqliteStore(path)
    talked("anthropic", store)
    store.close()
    return path


def slash(home, kept, verb, typed, end=END):
    """What a command's shell line says, run by a shell as the agents run it."""
    program = [sys.executable, "-m", "ullage"]
    text = text_of(FOLDERS["claude-code"], verb, program)
    line = text[text.index("!`") + 2 : text.rindex("`")]
    line = line.replace("$ARGUMENTS", typed).replace(END, end)
    home.mkdir(exist_ok=True)
    done = subprocess.run(
        ["bash", "-c", line],
        capture_output=True,
        text=True,
        cwd=home,
        env={
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "PYTHONPATH": os.pathsep.join(sys.path),
            "ULLAGE_STORE": str(kept),
        },
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def decisions(kept):
    store = SqliteStore(kept)
    try:
        entries = conversation(store, "").hand.decisions
        return [entry.decision for entry in entries]
    finally:
        store.close()


def newest(kept):
    return decisions(kept)[-1]


def test_what_was_typed_is_decided_by_the_user(home, kept):
    said = slash(home, kept, "pin", "m3 it's the house's rules")
    assert "pin message 3" in said
    assert "tokens are written to the prompt cache again, about $0." in said
    assert "Each later call costs about $0." in said
    made = newest(kept)
    assert (made.verb, made.author) == ("pin", "user")
    assert made.reason == "it's the house's rules"
    said = slash(home, kept, "pin", "m3.1 --lines 2-4 --reason 'the rules'")
    assert "lines 2 to 4" in said
    assert newest(kept).reason == "the rules"
    slash(home, kept, "restore", '"m3 some words"')
    assert newest(kept).reason == "some words"
    slash(home, kept, "restore", "--when end m5")
    assert newest(kept).when == "end"
    slash(home, kept, "drop", "m7")
    name = slash(home, kept, "undo", "").split(" ")[1].rstrip(":")
    assert newest(kept).verb == "undo"
    slash(home, kept, "undo", name)
    assert "m3.1" in slash(home, kept, "window", "")


def test_no_shell_reads_a_word_of_it(home, kept):
    typed = """it's $(touch hacked) "$HOME"; touch hacked && 'quoted' \\ $1"""
    slash(home, kept, "note", typed)
    assert newest(kept).text == typed
    slash(home, kept, "pin", "m3 ; touch hacked $(touch hacked)")
    assert newest(kept).reason == "; touch hacked $(touch hacked)"
    assert [*home.iterdir()] == []


def test_what_came_only_in_part_decides_nothing(home, kept):
    before = decisions(kept)
    said = slash(home, kept, "note", "see", end="")
    assert "Nothing was decided" in said
    assert "backquotes" in said
    for verb, typed, words in (
        ("pin", "m99", "m12 for message 12"),
        ("note", "", "the note is empty"),
        ("pin", "m3 --conversation cnone", "no such conversation"),
    ):
        said = slash(home, kept, verb, typed)
        assert "Nothing was decided" in said
        assert words in said
    assert decisions(kept) == before


def test_what_they_run_is_for_them_alone(home):
    assert commands.slash.hidden
    told = ullage(home, "--help").stdout
    assert "commands" in told
    assert "slash " not in told.replace("Slash commands", "")


def test_codex_has_skills_that_only_its_user_calls():
    """Its versions from 0.171 on have no place for prompts of a user's."""
    files = dict(files_of(FOLDERS["codex"], ["/bin/ullage"]))
    text = files["ullage-drop/SKILL.md"]
    assert "/bin/ullage slash drop <<'ULLAGE_END'\nWORDS\n" in text
    assert "!`" not in text
    head = text.split("---")[1].strip().splitlines()
    assert head[0] == "name: ullage-drop"
    assert json.loads(head[1].partition(": ")[2]).startswith("Take a text")
    rules = files["ullage-drop/agents/openai.yaml"]
    assert "allow_implicit_invocation: false" in rules
