"""What a call demands, read aloud."""

from itertools import chain

import pytest

from tests.replay.evidence.conversation import (
    call,
    first_uses,
    run_of,
    told,
    user,
)
from ullage.tools.replay.calls import boundaries
from ullage.tools.replay.evidence.demands import (
    HeadText,
    RunHistory,
    bucket_of,
    classes_of,
)
from ullage.wires import FORMATS

TASK = user("Why does the build fail?")
LISTING = call("list_files", "src/limits.py\nsrc/budget.py", path=".")
READ = call(
    "read_file", "class Limits:\n    window_tokens = 5", path="src/limits.py"
)


def test_a_path_a_tool_told_is_demanded_by_the_call_that_reads_it():
    assert first_uses(run_of(TASK, LISTING, READ)) == [("src/limits.py", 1)]


def test_what_the_user_said_is_no_demand():
    assert (
        first_uses(run_of(user("Look at src/limits.py."), LISTING, READ)) == []
    )


def test_what_the_system_or_a_schema_says_is_no_demand():
    system = [{"role": "system", "content": "Begin with src/limits.py."}]
    assert first_uses(run_of(system, TASK, LISTING, READ)) == []
    schema = {
        "type": "object",
        "properties": {"path": {"enum": ["src/limits.py"]}},
    }
    tool = {
        "type": "function",
        "function": {"name": "read_file", "parameters": schema},
    }
    assert first_uses(run_of(TASK, LISTING, READ, tools=[tool])) == []


def test_what_the_model_wrote_before_is_a_re_use():
    run = run_of(
        TASK, LISTING, READ, call("edit", "done", path="src/limits.py")
    )
    found = list(chain.from_iterable(told(run)[2]))
    assert [(d.atom.text, d.use) for d in found] == [
        ("src/limits.py", "first"),
        ("src/limits.py", "reuse"),
    ]


def test_an_attribute_the_user_named_with_its_owner_is_no_demand():
    listed = call("grep", "window_tokens = 5", pattern="=")
    use = call("grep", "…", pattern="window_tokens")
    assert first_uses(run_of(TASK, listed, use)) == [("window_tokens", 1)]
    assert (
        first_uses(run_of(user("What is Limits.window_tokens?"), listed, use))
        == []
    )


def test_the_old_text_of_an_edit_is_demanded_whole_and_by_its_names():
    shown = "\tself.rows = []\n"
    edit = call("edit", "ok", old_string="\tself.rows = []", new_string="")
    read = call("read_file", shown, path="limits")
    assert first_uses(run_of(TASK, read, edit)) == [
        ("\tself.rows = []", 1),
        ("self.rows", 1),
    ]
    numbered = call("read_file", "12→ self.rows = []", path="limits")
    assert first_uses(run_of(TASK, numbered, edit)) == [("self.rows", 1)]


def test_what_it_says_in_the_same_breath_is_not_before():
    read = call(
        "read_file", "…", said="I read src/limits.py.", path="src/limits.py"
    )
    assert first_uses(run_of(TASK, LISTING, read)) == [("src/limits.py", 1)]


def classes(run, common=frozenset()):
    """The classes of the values of all arguments."""
    story, lengths, _ = told(run)
    head = HeadText.of(story.wire, run.request)
    found = [classes_of(story, length, head, common) for length in lengths]
    return [kind for of_call in found for kind, _ in of_call.values()]


def test_what_no_tool_told_was_made_up():
    run = run_of(TASK, call("read_file", "no such file", path="src/guess.py"))
    assert classes(run) == ["generated"]


def test_what_every_task_knows_is_no_demand():
    run = run_of(TASK, LISTING, READ)
    assert first_uses(run, frozenset({"src/limits.py"})) == []
    assert classes(run, frozenset({"src/limits.py"})) == ["common"]


def test_the_age_counts_from_the_last_time_it_was_told():
    wait = [call("bash", "ok", command="make") for _ in range(3)]
    assert first_uses(run_of(TASK, LISTING, *wait, READ)) == [
        ("src/limits.py", 4)
    ]
    again = call("list_files", "src/limits.py", path="src")
    assert first_uses(run_of(TASK, LISTING, *wait, again, READ)) == [
        ("src/limits.py", 1)
    ]


def test_the_demands_of_a_call_weigh_one_together():
    move = call("move", "ok", source="src/limits.py", target="src/budget.py")
    found = list(chain.from_iterable(told(run_of(TASK, LISTING, move))[2]))
    assert [demand.weight for demand in found] == [0.5, 0.5]


def test_calls_side_by_side_are_one_call():
    both = call("read_file", "…", path="src/limits.py")
    other = call("read_file", "…", path="src/budget.py")
    both[0]["tool_calls"] += other[0]["tool_calls"]
    run = run_of(TASK, LISTING, [both[0], both[1], other[1]])
    assert len(boundaries(run)) == 2
    assert sorted(first_uses(run)) == [
        ("src/budget.py", 1),
        ("src/limits.py", 1),
    ]


@pytest.mark.parametrize(
    ("age", "bucket"),
    [
        (1, "1"),
        (2, "2-3"),
        (3, "2-3"),
        (4, "4-10"),
        (30, "11-30"),
        (31, ">30"),
    ],
)
def test_ages_fall_into_buckets(age, bucket):
    assert bucket_of(age) == bucket


def test_what_the_user_answered_through_a_tool_is_no_demand():
    answer = call(
        "AskUserQuestion", "Look at src/limits.py.", question="Where?"
    )
    assert first_uses(run_of(TASK, answer, READ)) == []
    assert (
        first_uses(
            run_of(TASK, call("ask_desk", "Look at src/limits.py."), READ)
        )
        != []
    )


def test_what_only_a_program_reads_is_no_text_of_a_run():
    caller = {"type": "code_execution_20260120", "tool_id": "srvtoolu_1"}
    use = {
        "type": "tool_use",
        "id": "toolu_1",
        "name": "query",
        "input": {"sql": "all"},
    }
    result = {
        "type": "tool_result",
        "tool_use_id": "toolu_1",
        "content": "row 1\nrow 2",
    }
    messages = [
        {"role": "user", "content": "Sum up."},
        {"role": "assistant", "content": [{**use, "caller": caller}]},
        {"role": "user", "content": [result]},
    ]
    pieces = RunHistory(FORMATS["anthropic"], messages).pieces
    assert [[piece.text for piece in each] for each in pieces] == [
        ["Sum up."],
        [],
        [],
    ]
