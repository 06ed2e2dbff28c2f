"""What is shown of a result that is too large, and what is kept."""

import json

import pytest

from tests.mcp.scripted import PIXEL, ROWS, STRICT, TEXT, line
from ullage.core.values.notices import Words, pointers
from ullage.doors.mcp.cutting import UNLISTED, cut
from ullage.doors.mcp.frames import UnreadableFrame

LOG = "".join(map(line, range(3_000)))
WORDS = Words()


def text(said):
    return {"type": "text", "text": said}


def shown(result, limit=4_000, schema=None, **settings):
    """The result as it goes on, and the originals kept, by ref."""
    raw = json.dumps(result).encode()
    schema = (
        json.dumps(schema).encode() if isinstance(schema, dict) else schema
    )
    made = cut(raw, "get", limit, schema, WORDS, **settings)
    if made is None:
        return result, {}
    return json.loads(made.result), {
        output.ref: output.text for output in made.outputs
    }


def refs(result):
    return [
        p.ref
        for block in result["content"]
        for p in pointers(block.get("text", ""))
    ]


def test_a_text_keeps_its_ends_and_names_its_ref():
    result, kept = shown({"content": [text(LOG)], "_meta": {"a": 1}})
    (block,) = result["content"]
    assert len(block["text"]) <= 4_000
    assert block["text"].startswith(line(0))
    assert line(2_999) in block["text"]
    assert kept == {refs(result)[0]: LOG}
    assert result["_meta"] == {"a": 1}


def test_a_json_text_stays_json():
    rows = json.dumps([{"id": n} for n in range(2_000)])
    result, _ = shown({"content": [text(rows)]})
    assert json.loads(result["content"][0]["text"])[0] == {"id": 0}


def test_what_fits_is_left():
    result = {
        "content": [text("x" * 2_000)],
        "structuredContent": {"result": "x" * 1_900},
    }
    assert shown(result) == (result, {})


def test_texts_share_the_limit_and_small_ones_stay():
    result, kept = shown(
        {"content": [text("short"), text(LOG), text(LOG[::-1])]}
    )
    assert result["content"][0] == text("short")
    assert sum(len(block["text"]) for block in result["content"]) <= 4_000
    assert {*kept.values()} == {LOG, LOG[::-1]}


def test_many_small_texts_become_one():
    blocks = [text(line(n)) for n in range(2_000)]
    result, kept = shown(
        {"content": [*blocks, {"type": "image", "data": PIXEL}, text("end")]}
    )
    assert len(result["content"]) == 3
    assert result["content"][-1] == text("end")
    assert [*kept.values()] == ["\n".join(block["text"] for block in blocks)]


def test_the_text_of_a_resource_is_cut_where_it_stands():
    resource = {"uri": "file:///log", "mimeType": "text/plain", "text": LOG}
    result, kept = shown(
        {"content": [{"type": "resource", "resource": resource}]}
    )
    (block,) = result["content"]
    assert block["resource"]["uri"] == "file:///log"
    assert len(block["resource"]["text"]) <= 4_000
    assert [*kept.values()] == [LOG]


BLOB = "A" * 50_000


@pytest.mark.parametrize(
    "block",
    [
        {"type": "image", "data": BLOB, "mimeType": "image/png"},
        {"type": "audio", "data": BLOB, "mimeType": "audio/wav"},
        {"type": "resource", "resource": {"uri": "u:x", "blob": BLOB}},
        {
            "type": "resource_link",
            "uri": "u:x",
            "name": "n",
            "description": BLOB,
        },
        {"type": "of a later version", "text_of_it": BLOB},
    ],
    ids=lambda block: block["type"],
)
def test_what_is_no_text_stays_whole_beside_one_that_is_cut(block):
    assert shown({"content": [block]}) == ({"content": [block]}, {})
    result, _ = shown({"content": [block, text(LOG)]})
    assert result["content"][0] == block
    assert len(result["content"][1]["text"]) <= 4_000


@pytest.mark.parametrize(
    "result",
    [
        {"content": [text(LOG)], "isError": True},
        {"content": [text(LOG)], "resultType": "input_required"},
        {"task": {"taskId": "t", "note": LOG}},
        {},
        {"content": []},
    ],
    ids=["error", "input required", "task", "empty", "no content"],
)
def test_errors_and_what_is_no_final_result_stay_whole(result):
    assert shown(result) == (result, {})


# Structure


def test_text_and_structure_that_say_the_same_share_limit_and_ref():
    said = {"content": [text(LOG)], "structuredContent": {"content": LOG}}
    result, kept = shown(said, schema=TEXT)
    assert [*kept.values()] == [LOG]
    assert len(result["content"]) == 1
    assert result["structuredContent"]["content"].startswith(line(0))
    assert (
        len(result["content"][0]["text"])
        + len(json.dumps(result["structuredContent"]))
        <= 4_000
    )


@pytest.mark.parametrize(
    "wrap", [lambda rows: rows, lambda rows: {"result": rows}]
)
def test_rows_said_as_json_are_the_same_too(wrap):
    rows = [{"id": n, "name": f"name {n}"} for n in range(2_000)]
    _, kept = shown(
        {"content": [text(json.dumps(rows))], "structuredContent": wrap(rows)}
    )
    assert len(kept) == 1
    _, kept = shown(
        {
            "content": [text(json.dumps(row)) for row in rows],
            "structuredContent": wrap(rows),
        }
    )
    assert len(kept) == 1


def test_a_structure_that_says_something_else_has_a_ref_of_its_own():
    rows = {"rows": [{"id": n, "name": f"name {n}"} for n in range(2_000)]}
    said = {"content": [text("2,000 rows")], "structuredContent": rows}
    result, kept = shown(said, schema=ROWS)
    (ref,) = refs(result)[:1]
    assert json.loads(kept[ref]) == rows
    assert result["content"][0] == text("2,000 rows")
    assert result["content"][1]["text"].startswith("[ullage: ")
    assert 3 < len(result["structuredContent"]["rows"]) < 200


def test_a_structure_that_was_cut_says_so_itself():
    rows = {"rows": [{"id": n, "name": f"name {n}"} for n in range(2_000)]}
    result, kept = shown(
        {"content": [], "structuredContent": rows}, schema=ROWS
    )
    *_, name = result["structuredContent"]
    notice, *_ = pointers(result["structuredContent"]["ullage"])
    assert name == "ullage"
    assert json.loads(kept[notice.ref]) == rows
    assert len(json.dumps(result["structuredContent"])) < 4_500


def test_a_structure_that_says_what_the_text_says_names_the_text_s_ref():
    said = {"content": [text(LOG)], "structuredContent": {"content": LOG}}
    result, kept = shown(said, schema=TEXT)
    notice, *_ = pointers(result["structuredContent"]["ullage"])
    assert kept[notice.ref] == LOG


def test_a_notice_takes_no_name_of_the_structure():
    rows = {"ullage": "mine", "rows": ["x" * 90] * 900}
    result, _ = shown({"content": [], "structuredContent": rows})
    assert result["structuredContent"]["ullage"] == "mine"
    assert "get_continuation" in result["structuredContent"]["ullage_notice"]


def test_a_list_without_a_schema_is_shown_as_text():
    rows = [{"id": n} for n in range(2_000)]
    result, kept = shown(
        {"content": [text("2,000 rows")], "structuredContent": rows}
    )
    assert "structuredContent" not in result
    assert json.loads(result["content"][1]["text"])[0] == {"id": 0}
    assert [json.loads(original) for original in kept.values()] == [rows]


def test_a_structure_whose_schema_nobody_knows_goes_whole():
    said = {"content": [text(LOG)], "structuredContent": {"content": LOG}}
    result, kept = shown(said, schema=UNLISTED)
    assert result["structuredContent"] == {"content": LOG}
    assert len(result["content"][0]["text"]) <= 4_000
    assert [*kept.values()] == [LOG]


def test_a_structure_that_cannot_be_shorter_goes_whole():
    said = {
        "content": [text("see")],
        "structuredContent": {"key": "a" * 50_000},
    }
    assert shown(said, schema=STRICT) == (said, {})


def test_one_that_is_too_large_for_that_becomes_an_error_that_says_how_to_read_it():
    key = {"key": "a" * 50_000}
    said = {"content": [text("see")], "structuredContent": key}
    result, kept = shown(said, schema=STRICT, whole_chars=40_000)
    assert result["isError"] is True
    assert "structuredContent" not in result
    assert result["content"][0] == text("see")
    assert "the call went well" in result["content"][1]["text"]
    assert json.loads(kept[refs(result)[0]]) == key


def test_a_text_with_half_a_surrogate_pair_is_cut_and_kept_as_it_is():
    broken = "\ud83d" + LOG
    result, kept = shown({"content": [text(broken)]})
    assert [*kept.values()] == [broken]
    assert result["content"][0]["text"].startswith("\ud83d" + line(0))


@pytest.mark.parametrize(
    "raw", [b"5", b'{"content": 5}', b'{"content": [5]}', b'{"content": ["x"']
)
def test_what_is_no_result_is_unreadable(raw):
    with pytest.raises(UnreadableFrame):
        cut(raw, "get", 1, None, WORDS)
