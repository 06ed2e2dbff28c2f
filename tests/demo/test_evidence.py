import json

from demo.evidence import Need, View, find, text_of, ways
from demo.status import Address
from tests.demo.standin import CONTINUATION, GREP

NEED = Need(Address("stdlib/a.py", 12), "(def|class) f")
REF = "k3x9a0b1c2d3e4f5"


def view_of(*results, offered=(CONTINUATION, GREP), prose=""):
    """A view of tool results, each (name, arguments, text)."""
    messages = [{"role": "user", "content": prose}]
    for number, (name, arguments, text) in enumerate(results):
        function = {"name": name, "arguments": json.dumps(arguments)}
        call = {"id": f"c{number}", "function": function}
        messages.append(
            {"role": "assistant", "content": "", "tool_calls": [call]}
        )
        messages.append(
            {"role": "tool", "tool_call_id": f"c{number}", "content": text}
        )
    return View(messages, [{"function": {"name": name}} for name in offered])


def read(text, **part):
    return ("read_file", {"path": "stdlib/a.py", **part}, text)


GONE = read(f'[gone: {CONTINUATION}(tool_call_id="{REF}", offset=0)]')


def test_a_line_is_evidence_only_from_a_reading_of_its_own_file():
    line = "    12|def f():\n"
    assert find(view_of(read(line)), NEED) == "def f():"
    assert (
        find(view_of(("read_file", {"path": "stdlib/b.py"}, line)), NEED)
        is None
    )
    assert (
        find(view_of(("search", {}, "stdlib/a.py:12:def f():")), NEED) is None
    )
    assert find(view_of(read("   112|def f():\n")), NEED) is None


def test_what_recall_returns_counts_for_the_file_its_ref_was_named_for():
    page = (GREP, {"ref_id": REF, "pattern": "x"}, "    12:    12|def f():")
    assert find(view_of(GONE, page), NEED) == "def f():"
    assert find(view_of(page), NEED) is None
    other = ("read_file", {"path": "stdlib/b.py"}, GONE[2])
    assert find(view_of(other, page), NEED) is None


def test_ways_go_from_search_to_pages_to_the_file_itself():
    assert list(ways(view_of(GONE), NEED)) == [
        (GREP, {"ref_id": REF, "pattern": "(def|class) f"}),
        (CONTINUATION, {"tool_call_id": REF, "offset": 0}),
        (
            "read_file",
            {"path": "stdlib/a.py", "start_line": 12, "end_line": 12},
        ),
    ]
    assert [name for name, _ in ways(view_of(GONE, offered=()), NEED)] == [
        "read_file"
    ]


HEAD = f"ref={REF} offset=400 of read_file"
FOUND = f"{HEAD} …dlib/a.py\n12:     12|def f():\n{HEAD} b.py\n12:     12|def g():\n[lines 1 to 2]"


def test_a_line_found_by_words_counts_under_the_head_of_its_file():
    asked = {"words": "read_file stdlib/a.py", "pattern": "x"}
    assert find(view_of((CONTINUATION, asked, FOUND)), NEED) == "def f():"
    other = Need(Address("stdlib/c.py", 12), "(def|class) f")
    assert find(view_of((CONTINUATION, asked, FOUND)), other) is None
    said = FOUND.replace("read_file", "search")
    assert find(view_of((CONTINUATION, asked, said)), NEED) is None


def test_a_tool_that_finds_by_words_is_asked_before_pages_are_read():
    messages = view_of(GONE).messages
    parameters = {
        "properties": {"tool_call_id": {}, "pattern": {}, "words": {}}
    }
    view = View(
        messages,
        [{"function": {"name": CONTINUATION, "parameters": parameters}}],
    )
    assert [arguments for _, arguments in ways(view, NEED)][:3] == [
        {"tool_call_id": REF, "pattern": "(def|class) f"},
        {"words": "read_file stdlib/a.py", "pattern": "(def|class) f"},
        {"tool_call_id": REF, "offset": 0},
    ]


def test_a_part_that_did_not_hold_the_line_is_no_source():
    elsewhere = (
        *GONE[:1],
        {"path": "stdlib/a.py", "start_line": 20, "end_line": 90},
        GONE[2],
    )
    assert [name for name, _ in ways(view_of(elsewhere), NEED)] == [
        "read_file"
    ]


def test_reading_on_continues_where_the_last_page_ended():
    more = f'     1|x\n[more: {CONTINUATION}(tool_call_id="{REF}", offset=80)]'
    page = (CONTINUATION, {"tool_call_id": REF, "offset": 0}, more)
    calls = list(ways(view_of(GONE, page), NEED))
    assert (CONTINUATION, {"tool_call_id": REF, "offset": 80}) in calls


def test_an_account_names_refs_beside_paths_and_parts():
    given = '{"path": "stdlib/a.py", "start_line": %d, "end_line": %d}'
    prose = f"- read_file {given % (1, 50)} → 9 characters, ref={REF}"
    assert next(ways(view_of(prose=prose), NEED))[1]["ref_id"] == REF
    other = f"- read_file {given % (60, 90)} → 9 characters, ref={REF}"
    first = next(ways(view_of(prose=other), NEED))
    assert first == (GREP, {"ref_id": REF, "pattern": r"stdlib/a\.py"})


def test_the_text_of_parts_is_put_together():
    parts = [
        {"type": "text", "text": "a"},
        {"type": "image_url"},
        {"type": "text", "text": "b"},
    ]
    assert text_of({"role": "tool", "content": parts}) == "ab"
    assert text_of({"role": "assistant", "content": None}) == ""
