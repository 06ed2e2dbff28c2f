"""Numbers from environment variables."""

import pytest

from ullage import ConfigError
from ullage.session.spend.environment import whole_number

READ = {
    "": None,
    "  ": None,
    "0": 0,
    "850000": 850_000,
    "850,000": 850_000,
    "1_048_576": 1_048_576,
    " 7 ": 7,
    "000": 0,
}


@pytest.mark.parametrize(("text", "number"), READ.items())
def test_a_number_is_read_as_people_write_it(monkeypatch, text, number):
    monkeypatch.setenv("A_NUMBER", text)
    assert whole_number("A_NUMBER") == number


@pytest.mark.parametrize(
    "text", ["1,00", "1.5", "-1", "1,000_000", "٣", "9" * 5_000, ",500"]
)
def test_anything_else_is_refused_by_the_variables_name(monkeypatch, text):
    monkeypatch.setenv("A_NUMBER", text)
    with pytest.raises(ConfigError) as caught:
        whole_number("A_NUMBER")
    assert caught.value.setting == "A_NUMBER"
    assert text not in str(caught.value)


def test_a_variable_that_is_not_set_is_no_number(monkeypatch):
    monkeypatch.delenv("A_NUMBER", raising=False)
    assert whole_number("A_NUMBER") is None
