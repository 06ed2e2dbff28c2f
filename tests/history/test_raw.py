from types import SimpleNamespace

import pytest

from ullage import FormatError
from ullage.core.history.raw import as_json, field, text_at


def test_a_field_is_read_of_a_dict_and_of_an_object_alike():
    for value in ({"role": "user"}, SimpleNamespace(role="user")):
        assert field(value, "role") == "user"
        assert field(value, "name") is None
        assert field(value, "name", "") == ""


@pytest.mark.parametrize("read", [text_at, as_json])
def test_what_cannot_be_read_is_told_by_its_place_and_type_and_never_shown(
    read,
):
    secret = {object(): "hunter2"}
    with pytest.raises(FormatError, match=r"messages\[3\]") as raised:
        read(secret, "messages[3]")
    assert "hunter2" not in str(raised.value)


def test_json_is_canonical():
    assert as_json({"b": 1, "a": "é"}, "here") == as_json(
        {"a": "é", "b": 1}, "here"
    )
