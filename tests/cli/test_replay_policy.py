"""The policy of a replay as people type it: what is none is an error that says how to make one."""

import sys

import pytest

from tests.cli.terminal import told, ullage
from tests.cli.test_replay import lines_of, trajectory
from tests.lab.replay.test_main import replay as lab_replay

MINE = """
from ullage.documents import token_budget
from ullage.documents.presets.token_budget import TokenBudgetSettings
from ullage.policy import Policy


class Strategy:
    pass


def stage(window):
    return []


def keep():
    return Policy(name="keeps-all")


def lost():
    raise ValueError("secret")


def confused():
    return len(5)


def none():
    pass


number = 5
nothing = None
small = token_budget(TokenBudgetSettings(input_token_budget=5_000))
"""
BROKEN = {
    "raises_here.py": "raise RuntimeError('secret')\n",
    "not_python.py": "def (\n",
    "exits_here.py": "import sys\nsys.exit(0)\n",
    "needs_more.py": "import nowhere_at_all\n",
}
REMEDY = 'policy = ullage.Policy(name="mine", on_arrival=(stage,))'


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with a recording, and modules of a user's own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "mypolicy.py").write_text(MINE)
    for name, text in BROKEN.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "runs.jsonl").write_bytes(lines_of(trajectory("one", 8)))
    yield tmp_path
    for name in ("mypolicy.py", *BROKEN):
        sys.modules.pop(name.removesuffix(".py"), None)


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("mypolicy:stage", "a function that needs arguments, not a Policy"),
        ("mypolicy:Strategy", "the class makes a Strategy, not a Policy"),
        ("mypolicy:none", "the function makes a NoneType, not a Policy"),
        ("mypolicy:lost", "fails when it is called (ValueError in line"),
        ("mypolicy:confused", "fails when it is called (TypeError in line"),
        ("mypolicy:number", "its type is int, not Policy"),
        ("mypolicy:nothing", "its type is NoneType, not Policy"),
        ("mypolicy:keeep", "has no 'keeep'. Did you mean 'keep'?"),
        ("mypolicy:", "not of the form module:name"),
        (":keep", "not of the form module:name"),
        (".mypolicy:keep", "not of the form module:name"),
        ("mypolicy:keep:x", "not of the form module:name"),
        ("nowhere:keep", "there is no module nowhere"),
        ("needs_more:keep", "imports nowhere_at_all, which is not there"),
        ("raises_here:keep", "it is imported (RuntimeError in line 1)"),
        ("not_python:keep", "it is imported (SyntaxError in line 1)"),
        ("exits_here:keep", "it is imported (SystemExit in line 2)"),
    ],
)
def test_what_is_no_policy_is_named_with_a_way_to_make_one(
    folder, name, found
):
    ran = ullage("replay", "runs.jsonl", "--jobs", 1, "--policy", name)
    assert ran.status == 1
    assert found in told(ran)
    assert REMEDY in told(ran)
    assert "secret" not in ran.err


def test_the_laboratory_takes_the_same_policies_and_refuses_the_same(folder):
    words = ("runs.jsonl", "--window", 16_000, "--jobs", 1, "--json")
    ran = lab_replay(
        *words, "--policy", "mypolicy:keep", "--policy", "recency"
    )
    policies = {row["policy"] for row in ran.json["rows"]}
    assert policies == {"mypolicy:keep", "recency"}
    served = lab_replay(*words, "--policy", "mypolicy:keep", "--serve")
    assert served.json["services"][0]["policy"] == "mypolicy:keep"
    refused = lab_replay(*words, "--policy", "mypolicy:stage")
    assert "needs arguments, not a Policy" in told(refused)
    assert "Did you mean 'recency'?" in told(
        lab_replay(*words, "--policy", "recenc")
    )


def test_what_a_policy_writes_of_its_batches_stays_out_of_a_replay(folder):
    words = ("runs.jsonl", "--window", 64_000, "--jobs", 1, "--json")
    ran = ullage("replay", *words, "--policy", "mypolicy:small")
    assert ran.json["rows"][-1]["events"]["pruned"] > 0
    assert ran.err == ""
