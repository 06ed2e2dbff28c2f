"""What a fault costs, and who can serve it."""

import json

import pytest

from lab.replay.adversaries import ADVERSARIES
from lab.replay.frame import frame
from lab.replay.past import budget_of
from lab.replay.readonly import reads_only
from lab.replay.service import cost_usd, serve
from lab.replay.subjects import FrameSubject, SessionSubject
from tests.replay.evidence.conversation import call, errand, run_of, told, user
from ullage.core.values.messages import ToolCall
from ullage.documents import preset
from ullage.tools.replay.calls import model_of, session_for
from ullage.tools.replay.cost.prices import PROFILES
from ullage.tools.replay.gates import Judge
from ullage.wires import FORMATS

PROFILE = PROFILES["anthropic-5m"]
DUE = "due: invoice_4711 of 12 March\n" + "and nothing else of note\n" * 40
WAIT = [call("bash", "ok", command="make") for _ in range(3)]
PAY = call("pay", "paid", number="invoice_4711")
RUN = run_of(
    user("Pay what is due."), call("list_due", DUE, month="March"), *WAIT, PAY
)


def served(policy, run=RUN, window=16_000):
    story, _, demands = told(run)
    if policy == "default":
        subject = SessionSubject(run, window, policy)
    else:
        subject = FrameSubject(
            run, window, ADVERSARIES.get(policy) or frame(policy, demands)
        )
    return serve(run, story, demands, subject, [PROFILE])


def test_what_is_in_view_costs_nothing_more():
    found = served("recency")
    assert (found.faults, found.tries, found.repeated, found.failed) == (
        0,
        0,
        0,
        0,
    )
    assert found.totals == found.raw
    assert found.output_tokens == found.raw_output_tokens


def test_a_ref_is_opened_with_one_more_request_and_its_page_stays():
    found = served("giant_ref")
    assert (
        found.faults,
        found.tries,
        found.wrong,
        found.repeated,
        found.failed,
    ) == (
        1,
        1,
        0,
        0,
        0,
    )
    assert found.totals[0].calls == found.raw[0].calls + 1
    assert found.output_tokens > found.raw_output_tokens


class Searching(FrameSubject):
    """Shows the last call alone, and searches by words."""

    def __init__(self, *found):
        super().__init__(RUN, 16_000, ADVERSARIES["last_call"])
        self.library.find = lambda words, page=1: found[page - 1]


@pytest.mark.parametrize(
    ("found", "searches", "wrong", "repeated"),
    [((DUE, ""), 1, 0, 0), (("", DUE), 2, 1, 0), (("", ""), 2, 2, 1)],
)
def test_words_are_searched_for_before_a_tool_is_called_again(
    found, searches, wrong, repeated
):
    story, _, demands = told(RUN)
    served = serve(RUN, story, demands, Searching(*found), [PROFILE])
    assert (served.faults, served.searches, served.wrong) == (
        1,
        searches,
        wrong,
    )
    assert (served.tries, served.repeated, served.failed) == (0, repeated, 0)
    assert served.totals[0].calls == served.calls + searches + repeated


def test_without_a_ref_the_tool_is_called_again_at_its_recorded_size():
    found = served("last_call")
    assert (found.faults, found.tries, found.repeated, found.failed) == (
        1,
        0,
        1,
        0,
    )
    assert found.totals[0].peak_tokens > 150  # the listing came back


def test_what_would_change_the_world_is_not_called_again():
    run = run_of(
        user("Order it."), call("submit_order", DUE, item="pen"), *WAIT, PAY
    )
    found = served("last_call", run)
    assert (found.faults, found.repeated, found.failed) == (1, 0, 1)


def test_wrong_refs_are_paid_for_and_three_are_enough():
    found = served("line_refs", errand(1), 8_000)
    assert found.faults > 0
    assert found.wrong <= found.tries <= 3 * found.faults
    assert found.repeated > 0
    assert found.totals[0].calls == found.calls + found.tries + found.repeated


@pytest.mark.parametrize("format", FORMATS)
def test_a_session_is_served_by_its_own_recall_on_every_wire(format):
    found = served("default", errand(2, format=format), 8_000)
    assert found.faults > 0
    assert found.tries > 0
    assert found.failed == 0
    assert found.over_limit == 0
    paid, raw = cost_usd(found)
    assert paid > 0
    assert raw > 0


def test_a_dollar_is_tokens_by_class_and_price():
    found = served("recency")
    totals = found.raw[0]
    paid = (
        totals.fresh_tokens
        + 1.25 * totals.written_tokens
        + 0.1 * totals.cached_tokens
    )
    assert cost_usd(found)[1] == pytest.approx(
        (
            paid * PROFILE.input_usd
            + found.raw_output_tokens * PROFILE.output_usd
        )
        / 1e6
    )


def test_the_budget_of_the_frame_is_that_of_a_session():
    assert budget_of(RUN, 16_000, Judge()) == 14_000


def test_a_session_of_a_replay_has_the_window_and_the_recall_of_its_policy():
    session = session_for(RUN, preset("default"), 16_000)()
    assert model_of(RUN) == session.settings.model == "gpt-4.1"
    assert session.settings.limits.window_tokens == 16_000
    assert session.settings.recall is True


@pytest.mark.parametrize(
    ("tool", "arguments", "reads"),
    [
        ("read_file", {}, True),
        ("Grep", {}, True),
        ("get_user_details", {}, True),
        ("find_and_replace", {}, False),
        ("write_file", {}, False),
        ("calculate", {}, False),
        ("bash", {"command": "cd src && grep -rn x . | head"}, True),
        ("bash", {"command": "git show HEAD"}, True),
        ("bash", {"command": "git commit -m x"}, False),
        ("bash", {"command": "cat a > b"}, False),
        ("bash", {"command": "sed -n 1,9p a"}, True),
        ("bash", {"command": "find . -delete"}, False),
        ("bash", {"command": "make test"}, False),
        ("bash", {}, False),
    ],
)
def test_only_what_reads_may_be_called_again(tool, arguments, reads):
    assert reads_only(ToolCall("c", tool, json.dumps(arguments), 0)) is reads
