"""One result cut, kept and read on, with a store and nothing else."""

import re

import pytest

import ullage
from ullage.core.values.notices import Words, pointers
from ullage.session.results import cut_result, cut_text, open_result

LOG = "".join(f"line {n}: all is well\n" for n in range(2_000))


def test_what_is_too_long_is_kept_before_it_is_shown_in_part():
    store = ullage.MemoryStore()
    shown = ullage.cut_result(LOG, store, tool="weather", tenant="me")
    assert len(shown) <= 8_000
    (ref,) = {pointer.ref for pointer in pointers(shown)}
    assert store.get("me", ref).text == LOG
    page = ullage.open_result(
        "get_continuation",
        {"tool_call_id": ref, "offset": len(LOG) - 9},
        store,
        tenant="me",
    )
    assert (page.text, page.is_error) == (LOG[-9:], False)


def test_what_fits_is_itself_and_nothing_is_kept():
    store = ullage.MemoryStore()
    assert cut_result(LOG, store, limit_chars=len(LOG)) is LOG
    assert cut_result("short", store) == "short"
    assert store.refs("") == ()


@pytest.mark.parametrize(
    ("tool", "most"), [("bash", 6_000), ("grep", 16_000), ("read", 40_000)]
)
def test_the_kind_of_tool_says_how_much_where_no_limit_is_given(tool, most):
    shown, output = cut_text(LOG * 3, tool=tool)
    assert most * 0.7 < len(shown) <= most
    assert output.text == LOG * 3


def test_whoever_is_another_tenant_reads_nothing():
    store = ullage.MemoryStore()
    ref = pointers(cut_result(LOG, store, tenant="me"))[0].ref
    answer = open_result(
        "get_continuation", f'{{"tool_call_id": "{ref}"}}', store, tenant="you"
    )
    assert answer.is_error


def test_notices_name_the_tool_that_there_is():
    store = ullage.MemoryStore()
    shown = cut_result(LOG, store)
    (tool,) = ullage.recall_tools()
    named = re.findall(r"(\w+)\(\w+=", shown.splitlines()[-1]) or re.findall(
        r"(\w+)\(tool", shown
    )
    assert named == [tool.name]
    ref = pointers(shown)[0].ref
    found = open_result(
        tool.name, {"tool_call_id": ref, "pattern": "line 1999:"}, store
    )
    assert "line 1999: all is well" in found.text


def test_notices_and_calls_share_a_wording():
    store, words = ullage.MemoryStore(), Words(prefix="my_")
    shown = cut_result(LOG, store, words=words)
    assert "my_get_continuation(" in shown
    assert open_result(
        "my_tool_output_cache", "{}", store, words=words
    ).is_error


def test_what_the_user_answers_is_whole_unless_a_limit_is_given():
    assert cut_text(LOG, tool="AskUserQuestion") is None
    assert cut_text(LOG, tool="weather") is not None
    assert cut_text(LOG, tool="AskUserQuestion", limit_chars=4_000) is not None


def test_a_search_without_a_ref_looks_through_one_conversation_and_through_no_tenant():
    store = ullage.MemoryStore()
    cut_result(f"{LOG}the lost anchor\n{LOG}", store, tenant="mine")
    cut_result(f"{LOG}another anchor\n", store, tenant="yours")
    arguments = {"words": "which anchor"}
    answer = open_result(
        "get_continuation",
        arguments,
        store,
        tenant="mine",
        is_one_conversation=True,
    )
    assert "the lost anchor" in answer.text
    assert "another anchor" not in answer.text
    answer = open_result("get_continuation", arguments, store, tenant="mine")
    assert answer.is_error
    assert "Give the ref" in answer.text
