"""What a run says at its end: each request in one class, and sums that add up."""

import re

from msgspec.structs import replace

from tests.proxy.told import FITTED, passed, relayed
from ullage.core.values.receipts import ReceiptTotals, TokenCounts
from ullage.doors.exchange.values import Passed
from ullage.tools.cli._tally import _REASONS, RunTally, summary

SHORTENED = replace(
    FITTED, is_shortened=True, has_recall_tools=True, recalled=2
)
GIVEN_A_TOOL = replace(FITTED, has_recall_tools=True)


def tally_of(*requests):
    tally = RunTally()
    for request in requests:
        tally.take(request)
    return tally


def counts(line):
    return [
        int(digits.replace(",", ""))
        for digits in re.findall(r"\d[\d,]*", line)
    ]


def test_each_request_is_in_one_class_and_the_counts_add_up():
    lines = summary(
        tally_of(
            relayed(SHORTENED),
            relayed(SHORTENED),
            relayed(GIVEN_A_TOOL),
            passed("path"),
            passed("signature"),
            passed("path"),
            relayed(SHORTENED, is_dry=True),
        )
    )
    assert lines[0] == (
        "7 requests: 2 shortened, 1 unchanged, 3 passed through, "
        "1 sent as they came (dry run)."
    )
    whole, *classes = counts(lines[0])
    assert whole == sum(classes)
    assert lines[1] == (
        "Passed through: 2 (not a conversation, such as a list of models), "
        "1 (the body is signed)."
    )
    assert lines[2] == (
        "3 requests had a tool added that opens what was shortened; "
        "the model used it 6 times."
    )


def test_a_request_that_grew_by_a_tool_alone_is_not_shortened():
    lines = summary(
        tally_of(relayed(GIVEN_A_TOOL, came_bytes=9, sent_bytes=900))
    )
    assert lines[0] == "1 request: 0 shortened, 1 unchanged, 0 passed through."


def test_the_dollars_are_those_of_the_receipts_and_add_up():
    spent = ReceiptTotals(
        requests=4,
        unreported=1,
        unpriced=2,
        unbilled=3,
        sent=TokenCounts(fresh=100, read=900, output=50),
        raw=TokenCounts(fresh=1_000, read=3_000, output=50),
        sent_usd=10.394,
        raw_usd=31.206,
    )
    text = "\n".join(summary(tally_of(relayed(SHORTENED)), spent))
    assert "Prompts: 1,000 tokens, 4,000 without ullage: 75% less." in text
    assert "Cost: $10.39, $31.21 without ullage: $20.82 saved, 67%." in text
    assert (
        "Measured: the tokens that the provider reported, at list price."
        in text
    )
    assert "The provider reported no usage of 1 request: estimated." in text
    assert (
        "No price is known for 2 requests: not in the sums of dollars." in text
    )
    assert "Nobody bills 3 requests: the model runs on a machine" in text
    dearer = replace(spent, sent_usd=0.02, raw_usd=0.01)
    text = "\n".join(summary(tally_of(relayed()), dearer))
    assert "Cost: $0.0200, $0.0100 without ullage: $0.0100 more, 100%." in text


def test_without_receipts_tokens_are_estimated_and_no_dollars_are_named():
    lines = summary(tally_of(relayed(replace(SHORTENED, is_changed=True))))
    assert (
        lines[-1]
        == "Prompts: 1,000 tokens, 4,000 without ullage: 75% less (estimated)."
    )
    assert "$" not in "".join(lines)


def test_requests_without_an_answer_are_told_and_cost_nothing():
    lines = summary(
        tally_of(
            relayed(replace(SHORTENED, status=0), is_broken=True),
            relayed(replace(SHORTENED, status=0), is_broken=True),
            relayed(replace(SHORTENED, status=529)),
            relayed(replace(SHORTENED, status=401)),
            relayed(replace(SHORTENED, status=529)),
        )
    )
    assert lines == [
        "5 requests: 5 shortened, 0 unchanged, 0 passed through.",
        "No answer came to 2 requests: the upstream could not be reached, or the client gave up.",
        "Errors from the upstream: 2 with status 529, 1 with status 401.",
        "5 requests had a tool added that opens what was shortened; the model used it 10 times.",
    ]


def test_nothing_is_said_of_nothing():
    assert summary(RunTally()) == []


def test_each_reason_has_words():
    assert set(_REASONS) == set(Passed.__args__)
