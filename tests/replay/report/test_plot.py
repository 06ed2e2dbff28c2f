"""The picture of a run: two lines, the limit, each rewriting; and what it came to in words."""

import xml.etree.ElementTree as ET
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from tests.cli.terminal import told, ullage
from tests.cli.test_replay import lines_of, trajectory
from ullage.tools.replay.report.plot import plot_of
from ullage.tools.replay.trace import Trace, TracedEdit

SVG = "{http://www.w3.org/2000/svg}"


def mark(turn, *, first=False):
    said = {
        "kind": "pruned",
        "subject": "bash",
        "reason": "it pays",
        "ref": "",
        "text": "",
    }
    return TracedEdit(
        turn=turn,
        is_new=first,
        message=1,
        stop=2,
        tokens_before=9_000,
        tokens_after=400,
        **said,
    )


def trace(sent, raw, marks=(), limit=56_000):
    calls = len(sent)
    return Trace(
        policy="default",
        window_tokens=64_000,
        share=None,
        limit_tokens=limit,
        lengths=list(range(calls)),
        sizes=[[tokens] for tokens in sent],
        raw=list(raw),
        cached=[0] * calls,
        written=[0] * calls,
        fresh=[0] * calls,
        rewritten=[0] * calls,
        cost_usd=[0.25] * calls,
        raw_cost_usd=[1.0] * calls,
        marks=list(marks),
        changes=[],
    )


def texts(svg):
    return [
        "".join(each.itertext())
        for each in ET.fromstring(svg).iter(f"{SVG}text")
    ]


def points(svg, kind):
    (path,) = (
        each
        for each in ET.fromstring(svg).iter(f"{SVG}path")
        if each.get("class") == kind
    )
    return [
        tuple(map(float, pair.split()))
        for pair in path.get("d")[1:].split(" L")
    ]


def test_it_tells_what_was_sent_what_it_cost_and_how_often_it_was_rewritten():
    marks = [mark(1, first=True), mark(2), mark(2)]
    said = texts(
        plot_of(
            trace([10_000, 40_000, 9_000], [10_000, 50_000, 90_000], marks),
            "A run",
        )
    )
    assert said[:2] == [
        "A run",
        "3 calls: 59k tokens sent instead of 150k · $0.75 instead of $3.00, caching counted",
    ]
    assert "● what was sent before is rewritten: 1 time" in said
    assert {"limit 56k", "sent 9k", "history 90k", "call 3"} <= set(said)


def test_both_lines_have_a_point_for_each_call_on_one_scale():
    svg = plot_of(trace([10_000, 45_000], [10_000, 90_000]), "A run")
    sent, raw = points(svg, "sent"), points(svg, "raw")
    assert sent[0] == raw[0]
    assert sent[1][0] == raw[1][0]
    bottom = 272
    assert (bottom - sent[1][1]) * 2 == bottom - raw[1][1]


def test_where_a_price_is_unknown_no_dollar_is_named():
    unpriced = trace([1_000], [2_000])
    unpriced.cost_usd[0] = None
    assert "$" not in plot_of(unpriced, "A run")


def test_a_title_is_text_and_no_markup():
    assert texts(plot_of(trace([1], [1]), "<b>&</b>"))[0] == "<b>&</b>"


@given(
    st.lists(
        st.tuples(st.integers(0, 10**7), st.integers(0, 10**7)), max_size=5
    )
)
def test_labels_are_never_over_one_another(sizes):
    svg = plot_of(
        trace([a for a, _ in sizes], [b for _, b in sizes], limit=20_000),
        "A run",
    )
    ends = [
        each
        for each in ET.fromstring(svg).iter(f"{SVG}text")
        if float(each.get("x")) > 500
    ]
    assert len(ends) >= 1
    heights = sorted(float(each.get("y")) for each in ends)
    assert all(below - above >= 16 for above, below in pairwise(heights))


def test_a_replay_draws_its_largest_run(tmp_path):
    (tmp_path / "runs.jsonl").write_bytes(
        lines_of(trajectory("small", 2), trajectory("large", 9))
    )
    words = (
        "replay",
        tmp_path / "runs.jsonl",
        "--window",
        16_000,
        "--jobs",
        1,
    )
    assert ullage(*words, "--plot", tmp_path / "out.svg").status == 0
    said = texts((tmp_path / "out.svg").read_text())
    assert said[0] == "What an agent was sent, in a window of 16k"
    assert said[1].startswith("10 calls: ")
    nowhere = told(
        ullage(*words, "--json", "--plot", tmp_path / "none" / "out.svg")
    )
    assert nowhere.startswith("--plot: the file cannot be written")
