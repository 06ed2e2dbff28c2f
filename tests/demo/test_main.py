import io
import re

import pytest
from rich.console import Console

from demo import __main__ as demo
from demo.agenda import QUICK
from demo.tools import default_roots
from tests.demo.standin import Prefix, Pruning
from ullage.tools.replay.calls import boundaries
from ullage.tools.replay.readers import read


def printed(tools, session=None, terminal=False):
    out = io.StringIO()
    console = Console(file=out, width=80, force_terminal=terminal)
    wiring = demo.Wiring(
        console=console,
        session=lambda window_tokens: session or Pruning(),
        cache=Prefix,
        agenda=QUICK,
        tools=tools,
    )
    return demo.demonstrate(wiring), out.getvalue()


@pytest.fixture(scope="module")
def first(tools):
    return printed(tools)


def without_times(text):
    return re.sub(r"\d+\.\d+ s ", "", text)


def test_the_demo_proves_its_point_in_80_columns(first):
    proved, text = first
    assert proved
    assert max(map(len, text.split("\n"))) <= 80
    assert re.search(r"(\d+) of \1 tool results came back byte for byte", text)
    assert re.search(
        r"(\d) of \1 lines quoted, the same as without a limit", text
    )
    for root in default_roots().values():
        assert str(root) not in text


def test_two_runs_print_the_same_numbers(first, tools):
    assert without_times(printed(tools)[1]) == without_times(first[1])


def test_a_plain_line_appears_every_ten_calls(first):
    assert re.search(
        r"^call   10  window +[\d,]+  history +[\d,]+  set aside +[1-9]\d*  recalls +\d+  Q2/2$",
        first[1],
        re.MULTILINE,
    )


def test_a_terminal_shows_the_window_live(tools):
    _, text = printed(tools, terminal=True)
    plain = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", text)
    for word in (
        "window",
        "history",
        "set aside",
        "recalls",
        "█",
        "pruned a result",
    ):
        assert word in plain


def test_a_session_that_loses_something_fails_the_demo(tools):
    class Lossy(Pruning):
        def close(self):
            self.closed = True

        def _page(self, ref, offset):
            return super()._page(ref, offset).replace("def ", "DEF ")

    session = Lossy()
    proved, text = printed(tools, session)
    assert not proved
    assert session.closed
    assert not re.search(r"(\d+) of \1 tool results", text)


def test_a_run_of_ones_own_goes_to_replay(monkeypatch):
    from ullage.tools import cli

    seen = []
    monkeypatch.setattr(cli, "main", seen.append, raising=False)
    assert demo.main(["--run", "my.json"]) == 0
    assert seen == [["replay", "my.json"]]


def test_the_whole_history_can_be_recorded_for_replay(tools, tmp_path):
    record = tmp_path / "demo.json"
    wiring = demo.Wiring(
        console=Console(file=io.StringIO(), width=80),
        session=lambda window_tokens: Pruning(),
        cache=Prefix,
        agenda=QUICK,
        tools=tools,
        record=record,
    )
    demo.demonstrate(wiring)
    (run,) = read(record)
    assert run.messages[-1]["role"] == "assistant"
    assert len(boundaries(run)) > 10
