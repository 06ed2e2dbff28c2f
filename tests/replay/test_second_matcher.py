"""The second evidence matcher: small conversations, each condition with a near miss."""

import json

import pytest

from tests.replay.second_matcher import (
    atom_visible,
    atoms_of,
    classes,
    demands,
    stop_list_for,
    visible,
)

NOWHERE = ()


def user(text):
    return {"role": "user", "content": text}


def call(said="", *, tool="bash", reasoning=None, **arguments):
    function = {"name": tool, "arguments": json.dumps(arguments)}
    message = {
        "role": "assistant",
        "content": said,
        "reasoning_content": reasoning,
    }
    return message | {
        "tool_calls": [{"id": "c", "type": "function", "function": function}]
    }


def result(text):
    return {"role": "tool", "tool_call_id": "c", "content": text}


def demanded(*messages, texts=NOWHERE, stop_list=NOWHERE):
    """Atoms the last call takes from results for the first time."""
    last = sum(message["role"] == "assistant" for message in messages)
    found = demands(messages, texts, stop_list)
    return {
        demand.atom
        for demand in found
        if demand.call_index == last and demand.first_use
    }


# The conditions


def test_a_value_that_a_result_showed_is_demanded_by_the_call_that_uses_it():
    [found] = demands(
        [
            user("fix it"),
            call(command="ls"),
            result("build_all.sh"),
            call(command="build_all.sh"),
        ],
        NOWHERE,
        NOWHERE,
    )
    assert (found.call_index, found.atom, found.kind) == (
        2,
        "build_all.sh",
        "identifier",
    )
    assert (found.age, found.source_line, found.first_use) == (
        1,
        "build_all.sh",
        True,
    )


@pytest.mark.parametrize(
    "messages",
    [
        [
            call(command="ls"),
            result("nothing"),
            call(command="sh build_all.sh"),
        ],
        [
            call(command="ls"),
            call(command="sh build_all.sh"),
            result("build_all.sh"),
        ],
        [
            call(command="ls"),
            result("rebuild_all.sh"),
            call(command="sh build_all.sh"),
        ],
        [
            call(command="ls"),
            result("build_all.sh-bak"),
            call(command="sh build_all.sh"),
        ],
        [
            call(command="ls"),
            result("Build_All.sh"),
            call(command="sh build_all.sh"),
        ],
    ],
    ids=[
        "in no result",
        "only in its own result",
        "a longer word",
        "a longer name",
        "other case",
    ],
)
def test_1_a_value_that_no_earlier_result_holds_is_not_demanded(messages):
    assert demanded(*messages) == set()


def test_2_a_value_the_user_gave_is_not_demanded():
    seen = [
        call(command="ls"),
        result("build_all.sh"),
        call(command="sh build_all.sh"),
    ]
    assert demanded(user("run build_all.sh"), *seen) == set()
    assert demanded(user("run build_all"), *seen) == {"build_all.sh"}
    assert demanded(*seen, user("thanks for build_all.sh")) == {"build_all.sh"}
    spoken = [{"type": "text", "text": "run build_all.sh"}]
    assert demanded({"role": "user", "content": spoken}, *seen) == set()


def test_2_a_value_of_the_system_text_or_a_schema_is_not_demanded():
    seen = [
        call(command="ls"),
        result("build_all.sh"),
        call(command="sh build_all.sh"),
    ]
    assert demanded(*seen, texts=["Always build with build_all.sh."]) == set()
    assert demanded(*seen, texts=["Always build with build_all.shx"]) == {
        "build_all.sh"
    }
    assert (
        demanded({"role": "system", "content": "Use ./build_all.sh"}, *seen)
        == set()
    )


@pytest.mark.parametrize(
    "earlier",
    [
        call(said="I shall need build_all.sh", command="ls"),
        call(reasoning="perhaps build_all.sh", command="ls"),
        call(command="ls build_all.sh"),
    ],
    ids=["said", "thought", "as an argument"],
)
def test_3_a_value_the_assistant_wrote_before_is_a_re_use(earlier):
    [found] = demands(
        [earlier, result("build_all.sh"), call(command="build_all.sh")], (), ()
    )
    assert (found.call_index, found.atom, found.first_use) == (
        2,
        "build_all.sh",
        False,
    )


def test_3_what_the_call_itself_says_does_not_make_it_a_re_use():
    now = call(said="Now build_all.sh", command="sh build_all.sh")
    assert demanded(call(command="ls"), result("build_all.sh"), now) == {
        "build_all.sh"
    }


def test_4_a_value_of_the_stop_list_is_not_demanded():
    seen = [
        call(command="ls"),
        result("build_all.sh"),
        call(command="sh build_all.sh"),
    ]
    assert demanded(*seen, stop_list={"build_all.sh"}) == set()
    assert demanded(*seen, stop_list={"build_all"}) == {"build_all.sh"}


def test_4_the_stop_list_holds_what_more_than_one_other_task_in_fifty_uses():
    atoms_by_task = {f"task {i}": set() for i in range(101)}
    atoms_by_task["task 1"] = {"in_three", "in_two"}
    atoms_by_task["task 2"] = {"in_three", "in_two"}
    atoms_by_task["task 3"] = {"in_three"}
    assert stop_list_for("task 0", atoms_by_task) == {"in_three"}
    assert stop_list_for("task 3", atoms_by_task) == frozenset()


def test_5_the_name_of_the_tool_and_its_enum_values_are_not_demanded():
    tools = json.dumps({"name": "run_it", "enum": ["whole_file"]})
    seen = [call(tool="x"), result("read_file whole_file part_file")]
    used = {"mode": "whole_file", "of": "part_file", "with": "read_file"}
    assert demanded(*seen, call(tool="read_file", **used), texts=[tools]) == {
        "part_file"
    }
    assert demanded(*seen, call(tool="x", **used), texts=[tools]) == {
        "part_file",
        "read_file",
    }


def test_every_atom_is_of_one_class():
    messages = [
        user("see user_value"),
        call("see own_value", command="ls"),
        result("see new_value, stop_value, own_again and user_value"),
        call("so own_again", command="ls"),
        result("nothing"),
        call(
            tool="stop_tool",
            of="user_value; own_value; new_value; stop_value; own_again; made_up",
        ),
    ]
    found = [
        (class_, demand.atom)
        for class_, demand in classes(messages, (), {"stop_value"})
    ]
    assert found == [
        ("user/system", "user_value"),
        ("re-use", "own_value"),
        ("demand", "new_value"),
        ("stop list", "stop_value"),
        ("re-use", "own_again"),
        ("generated", "made_up"),
    ]


# Age


def test_age_counts_from_the_latest_result_that_holds_the_value():
    first = [
        call(command="ls"),
        result("build_all.sh"),
        call(command="cd"),
        result(""),
    ]
    again = [
        call(command="ls"),
        result("./build_all.sh now"),
        call(command="cd"),
        result(""),
    ]
    use = call(command="sh build_all.sh")
    [found] = demands([*first, use], (), ())
    assert (found.age, found.source_line, found.other_lines) == (
        2,
        "build_all.sh",
        (),
    )
    [found] = demands([*first, *again, use], (), ())
    assert (found.call_index, found.age) == (5, 2)
    assert (found.source_line, found.other_lines) == (
        "./build_all.sh now",
        ("build_all.sh",),
    )


def test_a_reply_without_tool_calls_is_a_call():
    spoken = {"role": "assistant", "content": "Shall I?"}
    seen = [call(command="ls"), result("build_all.sh"), spoken, user("yes")]
    [found] = demands([*seen, call(command="sh build_all.sh")], (), ())
    assert (found.call_index, found.age) == (3, 2)


# Atoms


@pytest.mark.parametrize(
    ("text", "atoms"),
    [
        ("cat src/a.py:12", {"src/a.py": "path"}),
        ("see https://a.org/b?c=d.", {"https://a.org/b?c=d": "path"}),
        ("Parser parser", {}),
        ("self.x, a_b, x.py", {"self.x": "identifier"}),
        (
            "QuerySet HTTPServer",
            {"QuerySet": "identifier", "HTTPServer": "identifier"},
        ),
        ("sed -n 10,999p", {}),
        (
            "at 12.5% in 0.27.0 of 2024-05-11",
            {
                "12.5": "number",
                "0.27.0": "identifier",
                "2024-05-11": "identifier",
            },
        ),
        ("ask ann.lee@x.org", {"ann.lee@x.org": "identifier"}),
        (r"grep '\bto_find\b'", {"to_find": "identifier"}),
        (
            r'echo "one\nto_find"',
            {"to_find": "identifier", "one\nto_find": "literal"},
        ),
        ("say \"it's 'it'\"", {"it's 'it'": "literal"}),
        (
            "ls ../src/a.py ~/.x_y **/b/c_d.py [Y/n]",
            {
                "src/a.py": "path",
                "~/.x_y": "path",
                "b/c_d.py": "path",
            },
        ),
        ("see https://a.org/b_(c),d/.", {"https://a.org/b_(c),d": "path"}),
        (
            "wait 1000 or 15ms or 0.5",
            {"1000": "number", "15ms": "number", "0.5": "number"},
        ),
        (
            "git show abc123 deadbeef",
            {"abc123": "identifier", "deadbeef": "hash"},
        ),
        ("say 'it is so'", {"it is so": "literal"}),
        ("say 'it was' and don't say won't", {}),
        ("cut -d '          '", {}),
        ("</first_name>", {"first_name": "identifier"}),
        ("cat lib/@scope/a.py", {"lib/@scope/a.py": "path"}),
    ],
)
def test_what_is_an_atom(text, atoms):
    assert atoms_of(call(text=f"$ {text}")) == atoms


@pytest.mark.parametrize(
    "text", ["Emma Kim", "12 Oak Street, Suite 8", "St. Mary's"]
)
def test_a_whole_string_of_a_few_words_is_a_literal(text):
    assert atoms_of(call(name=text))[text] == "literal"
    assert text not in atoms_of(call(name=f"{text};"))
    assert text not in atoms_of(call(name=text * 8))


def test_numbers_of_json_are_no_atoms_and_lists_are_looked_into():
    assert atoms_of(call(line=12345, files=[{"path": "a/bc"}])) == {
        "a/bc": "path"
    }


def test_arguments_that_are_no_json_are_one_string():
    broken = call()
    broken["tool_calls"][0]["function"]["arguments"] = '{"path": "src/a.py'
    assert atoms_of(broken) == {"src/a.py": "path"}


def test_old_text_is_one_atom_whole_and_split_too():
    old = "x = first_value\ny = 2"
    whole = {old: "quote", "first_value": "identifier"}
    assert atoms_of(call(old_string=old)) == whole
    assert atoms_of(call(edits=[{"oldText": old}])) == whole
    assert atoms_of(call(search=old, replace="")) == whole
    assert atoms_of(call(search=old)) == {"first_value": "identifier"}
    assert atoms_of(call(old_path=old)) == {"first_value": "identifier"}
    assert atoms_of(call(old_string="first_value")) == {"first_value": "quote"}
    assert atoms_of(call(old_string="  a = 1  ")) == {}


def test_old_text_is_demanded_byte_for_byte():
    old = "if a:\n    b = 1"
    edit = call(tool="edit", old_string=old, new_string="")
    assert demanded(
        call(tool="read"), result(f"def f():\n  {old}0"), edit
    ) == {old}
    assert demanded(
        call(tool="read"), result(json.dumps({"text": old})), edit
    ) == {old}
    assert demanded(call(tool="read"), result("if a:\n  b = 1"), edit) == set()
    assert (
        demanded(call(tool="read"), result("1\tif a:\n2\t    b = 1"), edit)
        == set()
    )


# Matching


@pytest.mark.parametrize(
    ("used", "text", "found"),
    [
        ("src/a.py", "/repo/src/a.py:3", True),
        ("module.py", "/repo/src/module.py", True),
        ("src/a.py", "/repo/my-src/a.py", False),
        ("/repo/src", "/repo/src/a.py", False),
        ("/repo/src/a.py", "src/a.py", False),
        ("other_name", "self.other_name", True),
        ("other_name", "its-other_name", False),
        ("other_name", "other_name/a.py", False),
        ("other_name", "call(other_name).", True),
        ("1234.5", "31234.5", False),
        ("first_word", json.dumps("a line\nfirst_word"), True),
        ("--no-color-x", "use no-color-x", True),
        ("src/a.py", "see @src/a.py", True),
        ("@scope/a.py", "lib/@scope/a.py", True),
        (".profile_x", "home/.profile_x", True),
        ("x().first_item", "first_item", True),
    ],
)
def test_where_a_token_occurs(used, text, found):
    assert bool(demanded(call(), result(text), call(command=used))) is found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('raise Error("not so good")', True),
        (json.dumps('raise Error("not so good")'), True),
        ("the not so good.", True),
        ("not so goods", False),
        ("knot so good", False),
        ("12-not so good-natured", True),
        ("not  so good", False),
    ],
)
def test_where_a_quoted_literal_occurs(text, found):
    use = call(command="grep -rn 'not so good'")
    assert bool(demanded(call(), result(text), use)) is found


# Visible

LISTING = "total 3\nmode 644 owner root file /etc/app.conf\nend"


def wanting(text, atom):
    messages = [call(command="ls"), result(text), call(command=f"cat {atom}")]
    [found] = [
        demand for demand in demands(messages, (), ()) if demand.atom == atom
    ]
    return found


@pytest.mark.parametrize(
    ("view", "line", "atom"),
    [
        ([result(LISTING)], True, True),
        (
            [user("In short: mode 644, owner root, file /etc/app.conf.")],
            True,
            True,
        ),
        ([user("mode owner root file /etc/app.conf")], True, True),
        ([user("owner root file /etc/app.conf")], False, True),
        ([user("/etc/app.conf file root owner 644 mode")], False, True),
        ([user("/etc/app.conf")], False, True),
        (
            [user("mode 644 owner root"), user("file /etc/app.conf")],
            False,
            True,
        ),
        ([user("mode 644 owner root file")], False, False),
        ([user("mode 644 owner root file /etc/app.config")], False, False),
        ([result("") | {"tool_call_id": LISTING}], False, False),
        ([], False, False),
    ],
    ids=[
        "as it was",
        "said again",
        "five of six tokens",
        "four of six tokens",
        "turned round",
        "the value alone",
        "over two messages",
        "all but the value",
        "all but the value's end",
        "hidden in an id",
        "nothing",
    ],
)
def test_what_is_visible(view, line, atom):
    demand = wanting(LISTING, "/etc/app.conf")
    assert visible(demand, view) is line
    assert atom_visible(demand, view) is atom


def test_of_a_long_line_the_window_around_the_value_is_enough():
    around = "nearby " * 11, " nearby" * 11
    line = "far_off " * 50 + "the_value".join(around) + " far_off" * 50
    demand = wanting(line, "the_value")
    assert len(demand.source_line) == 80 + len("the_value") + 80
    assert visible(demand, [user("the_value".join(around))])
    assert not visible(demand, [user("nearby the_value nearby")])
    assert not visible(demand, [user("the_value " + "far_off " * 100)])


def test_a_window_that_cuts_its_tokens_is_visible_where_it_is_kept():
    line = f"{'a' * 200} the_value {'b' * 200}"
    assert visible(wanting(line, "the_value"), [result(line)])


def test_the_source_line_of_old_text_ends_with_it():
    edit = call(tool="edit", old_string="one_a\ntwo_b\n")
    [found] = demands(
        [call(tool="read"), result("one_a\ntwo_b\nthree_c"), edit], (), ()
    )
    assert found.source_line.splitlines() == ["one_a", "two_b"]


def test_source_lines_are_without_escapes():
    found = wanting(
        '{"text": "one\\n\\ud83d\\ude00\\tthe_value"}', "the_value"
    )
    assert found.source_line == '😀\tthe_value"}'


def test_any_of_the_source_lines_is_enough():
    listed = [call(command="ls"), result("the file build_all.sh is here")]
    warned = [
        call(command="lint"),
        result("warning: do not use build_all.sh today"),
    ]
    [found] = demands(
        [*listed, *warned, call(command="sh build_all.sh")], (), ()
    )
    assert visible(found, [user("the file build_all.sh is here")])
    assert visible(found, [user("warning: do not use build_all.sh today")])
    assert not visible(found, [user("warning: build_all.sh is not the file")])


def test_the_line_must_stand_around_the_value():
    demand = wanting("the file build_all.sh is here", "build_all.sh")
    assert visible(demand, [user("the file build_all.sh was here")])
    assert not visible(demand, [user("the file is here: build_all.sh")])
    scattered = f"the file build_all.py is here {'and ' * 60} build_all.sh"
    assert not visible(demand, [user(scattered)])


def test_an_escaped_line_is_visible():
    demand = wanting(LISTING, "/etc/app.conf")
    assert visible(demand, [result(json.dumps({"output": LISTING}))])
    assert visible(demand, [call(tool="note", text=LISTING)])
