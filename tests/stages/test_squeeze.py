import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ullage.policy.stages.squeeze import is_data, squeezed, table_of

names = st.text('abc.:"é', min_size=1, max_size=4)
values = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(2**60), 2**60),
        st.text('ab 1:,"é\\\n', max_size=12),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=5), st.dictionaries(names, inner, max_size=5)
    ),
    max_leaves=15,
)
rows = st.lists(
    st.dictionaries(names, values, min_size=1, max_size=5),
    min_size=3,
    max_size=9,
)


def compact(value):
    return json.dumps(
        value, ensure_ascii=False, separators=(",", ":")
    ).encode()


def scalars(value):
    """Everything in a value that is not empty, as text, in order."""
    if isinstance(value, dict):
        return [each for item in value.values() for each in scalars(item)]
    if isinstance(value, list):
        return [each for item in value for each in scalars(item)]
    return [] if value in (None, "") else [json.dumps(value)]


def test_like_objects_become_rows_under_their_names_without_what_is_empty():
    orders = [
        {
            "id": at,
            "note": "",
            "size": {"width": 10 * at, "height": None},
            "tags": [],
            "sent": at > 1,
        }
        for at in range(12)
    ]
    names, *table = json.loads(squeezed(compact(orders)))
    assert names == ["id", "size.width", "sent"]
    assert table == [[at, 10 * at, at > 1] for at in range(12)]


def test_what_one_object_lacks_is_an_empty_value_in_its_row():
    orders = [
        {"id": at, "colour": "red"} if at % 2 else {"id": at}
        for at in range(12)
    ]
    _, *table = json.loads(squeezed(compact(orders)))
    assert table == [[at, "red" if at % 2 else ""] for at in range(12)]


@pytest.mark.parametrize(
    "objects",
    [
        [{"id": at, "name": "a"} for at in range(2)],  # too few
        [{"id": at} for at in range(9)],  # one column
        [{f"key{at}": at} for at in range(9)],  # not alike
        [
            {"a.b": at, "a": {"b": at + 1}} for at in range(9)
        ],  # one name, two values
        [{"id": at} for at in range(8)] + [9],  # not objects alone
    ],
)
def test_objects_that_are_no_table_stay_as_they_are(objects):
    assert table_of(list(map(compact, objects))) is None


@given(rows)
def test_no_value_is_lost_in_a_table(objects):
    items = list(map(compact, objects))
    table = table_of(items)
    if table is None:
        return
    in_rows = [scalars(json.loads(row)) for row in table.rows]
    assert list(map(sorted, in_rows)) == [
        sorted(scalars(each)) for each in objects
    ]
    assert {len(json.loads(row)) for row in table.rows} == {
        len(json.loads(table.names))
    }
    assert table.size_bytes < len(compact(objects))


@given(values)
def test_nothing_grows_and_nothing_is_left_out(value):
    raw = compact(value)
    small = squeezed(raw)
    assert len(small) <= len(raw)
    assert set(scalars(value)) <= set(scalars(json.loads(small)))


def test_a_text_block_of_a_server_is_read_as_what_it_holds():
    orders = [{"id": at, "name": f"order {at}"} for at in range(40)]
    block = {
        "type": "text",
        "text": json.dumps(orders, indent=2),
        "annotations": None,
    }
    small = json.loads(squeezed(compact([block])))
    assert small[0]["text"][:2] == [["id", "name"], [0, "order 0"]]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"a": 1}', True),
        (" [1, 2]", True),
        ('{"type": "text", "text": "[1, 2]"}', True),
        ('[{"type": "text", "text": "a log"}]', False),
        (
            '[{"type": "text", "text": "a log"}, {"type": "text", "text": "one more"}]',
            True,
        ),
        ("a log", False),
        ("{not json}", False),
        ('"a string"', False),
    ],
)
def test_a_frame_around_a_plain_text_is_no_data(text, expected):
    assert is_data(text) is expected
