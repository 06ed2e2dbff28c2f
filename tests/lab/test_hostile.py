"""The commands that count: a slice of what they try is tried here."""

import pytest

from lab import hostile
from ullage.wires import FORMATS


@pytest.mark.parametrize("format", FORMATS)
def test_every_bad_input_of_a_format_is_counted(monkeypatch, format):
    some = hostile.ODD_ONES[format][::60]
    monkeypatch.setitem(hostile.ODD_ONES, format, some)
    tried, shown = hostile.bad_inputs(format)
    assert tried == 2 * len(some) > 20
    assert 0 < shown < tried
