import json

from hypothesis import given
from hypothesis import strategies as st

from tests.stages.test_squeeze import names, values
from ullage.policy.stages.places import named, place_of


@given(st.lists(values), st.sampled_from((None, 2)))
def test_the_place_of_an_item_is_where_it_begins(items, indent):
    text = json.dumps(items, indent=indent)
    read = json.JSONDecoder().raw_decode
    assert [
        read(text, place_of(text, (at,)))[0] for at in range(len(items))
    ] == items


@given(st.dictionaries(names, values), st.sampled_from((None, 2)))
def test_the_place_of_a_field_is_before_its_value_and_behind_the_one_before(
    fields, indent
):
    text = json.dumps(fields, indent=indent)
    places = [place_of(text, (key,)) for key in fields]
    assert places == sorted(places)
    for at, value in zip(places, fields.values(), strict=True):
        assert json.dumps(value, indent=indent)[:1] in text[at:]


def test_the_place_of_a_value_within_a_string_counts_its_escapes():
    inner = json.dumps([{"é": 'a "quoted" word\n'}, {"id": 7}])
    for only_ascii in (True, False):
        text = json.dumps(
            [{"type": "text", "text": inner}], ensure_ascii=only_ascii
        )
        at = place_of(text, (0, "text", None, 1))
        assert text[at:].startswith('{\\"id\\": 7}')
    assert named((0, "text", None, 1, "id")) == "[0].text[1].id"
