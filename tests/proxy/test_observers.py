"""Who looks on: a mistake of theirs never reaches a request."""

from tests.proxy.told import relayed
from ullage.doors.proxy.config import Config
from ullage.doors.proxy.observers import Observers, observers_of


def test_a_mistake_is_counted_and_the_others_are_told():
    told = []

    def broken(_):
        raise ValueError

    watch = Observers([broken, told.append])
    watch(relayed())
    assert (watch.mistakes, len(told), watch.activity.totals.requests) == (
        1,
        1,
        1,
    )


def test_a_log_is_written_where_it_is_wanted(capsys):
    observers_of(Config(log=True))(relayed())
    assert '"done":"fitted"' in capsys.readouterr().err
    observers_of(Config())(relayed())
    assert capsys.readouterr().err == ""
