"""A line of JSON for each request, and nothing of anybody's in it."""

import io
import json
import signal

from msgspec.structs import replace

from tests.proxy.started import started
from tests.proxy.told import FITTED, broke, passed, relayed
from tests.proxy.upstream import ask, upstream
from ullage.doors.proxy.logs import MOST_REFUSALS, RefusalLines, lines_to


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


def test_an_answer_of_the_proxys_own_has_its_status():
    told = passed("error")
    silent = replace(told.report, status=0)
    (line,) = lines(replace(told, report=silent, own_status=502))
    assert line["status"] == 502


def test_refusals_are_lines_and_too_many_of_them_are_a_number():
    file = io.StringIO()
    now_s = [1_800_000_000.0]
    refuse = RefusalLines(file, lambda: now_s[0])
    for _ in range(MOST_REFUSALS + 5):
        refuse(403, "its Host is no name of this proxy's")
    now_s[0] += 60
    refuse(400, "no upstream has this address")
    written = [json.loads(line) for line in file.getvalue().splitlines()]
    assert len(written) == MOST_REFUSALS + 1
    assert written[0] == {
        "at": "2027-01-15T08:00:00.000+00:00",
        "done": "refused",
        "status": 403,
        "problem": "its Host is no name of this proxy's",
    }
    assert (written[-1]["status"], written[-1]["left_out"]) == (400, 5)


def test_whoever_is_refused_leaves_a_line_and_no_word_of_theirs(tmp_path):
    with (
        upstream() as there,
        started(there, "--log", f"--store={tmp_path}/kept.db") as proxy,
    ):
        simple = {"Content-Type": "text/plain", "X-A": "SECRET"}
        ours = "/_ullage/v1/compress", "/_ullage/conversations/SECRET/decide"
        asked = [
            ask(proxy.url, path="/SECRET/x"),
            ask(proxy.url, "POST", "/v1/x", b"", {"Origin": "https://SECRET"}),
            *(
                ask(proxy.url, "POST", path, b"", simple)
                for path in ("/v1/x", *ours)
            ),
            ask(proxy.url, path="/_ullage/", headers={"Origin": "//SECRET"}),
        ]
        proxy.process.send_signal(signal.SIGTERM)
        said = proxy.process.stderr.read()
    statuses = [status for status, *_ in asked]
    assert statuses == [400, 403, 403, 403, 403, 403]
    assert "SECRET" not in said
    refused = [
        json.loads(line)
        for line in said.splitlines()
        if line.startswith("{") and '"refused"' in line
    ]
    assert [line["status"] for line in refused] == statuses
