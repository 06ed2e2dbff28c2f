"""What an exchange reports: once, whatever became of it."""

from tests.exchange.scripted import exchanges
from ullage.doors.exchange.reporting import Reporting
from ullage.session.drivers import drive


def test_it_is_counted_once_and_says_what_passed():
    door, reports = exchanges()
    made = Reporting(door, "/v1/files?secret=1", "path")
    made.note_stream()
    made.over(200)
    made.over(500)
    (report,) = reports
    assert (report.path, report.passed, report.status) == (
        "/v1/files",
        "path",
        200,
    )
    assert report.is_streamed
    assert door.counts.requests == 1


def test_a_mistake_is_told_by_its_kind_and_goes_no_further():
    door, reports = exchanges()
    made = Reporting(door, "/v1/messages", None)

    def fail():
        raise ValueError("the words of a user")

    assert drive(made._attempt(fail)) is None
    made.over(200)
    assert reports[0].problem == "ValueError"
