"""A line of JSON for each request, and nothing of anybody's in it."""

import io
import json

from msgspec.structs import replace

from tests.proxy.told import FITTED, broke, passed, relayed
from ullage.doors.proxy.logs import lines_to


def lines(*told):
    file = io.StringIO()
    tell = lines_to(file)
    for each in told:
        tell(each)
    return [json.loads(line) for line in file.getvalue().splitlines()]


def test_a_line_says_what_it_came_to():
    (line,) = lines(relayed())
    assert line["at"] == "2027-01-15T08:00:00.000+00:00"
    assert (line["done"], line["came_tokens"], line["sent_tokens"]) == (
        "fitted",
        4_000,
        1_000,
    )
    assert (line["fit_ms"], line["whole_ms"], line["input_tokens"]) == (
        4.0,
        500.0,
        1_000,
    )
    assert line["tenant"] == "tenant-of-somebody"
    (line,) = lines(passed("asked"))
    assert (line["done"], line["passed"]) == ("passed", "asked")
    assert "path" not in line
    assert "held_out" not in line
    (line,) = lines(relayed(replace(FITTED, is_held_out=True)))
    assert line["held_out"] is True


def test_nothing_fails_for_a_log_that_takes_nothing():
    file = io.StringIO()
    tell = lines_to(file)
    file.close()
    tell(relayed())


def test_a_line_names_the_cause_of_a_broken_cache():
    whole, broken = lines(relayed(), broke())
    assert (broken["cache_broken"], broken["rebilled_tokens"]) == (
        "tools",
        900,
    )
    assert "cache_broken" not in whole
