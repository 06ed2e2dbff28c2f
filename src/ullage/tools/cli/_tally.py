"""What a proxy did with the requests of one run, counted and put into sentences.

Every request is in exactly one of four classes, so that the counts add up:

    shortened        something of its history was shortened or left out
    unchanged        its history was sent whole; the recall tool may have been added
    passed through   it was not fitted, for a reason that is named
    dry              it was fitted and counted, and what came was sent
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from ullage.core.values.receipts import ReceiptTotals
from ullage.doors.exchange.values import Passed
from ullage.doors.proxy.activity import ConversationActivity
from ullage.doors.proxy.relayed import Relayed, raw_tokens

_CENTS_FROM_USD = 1.0
"""Smaller sums are shown with four decimals."""

_FIRST_ERROR = 400
"""The status from which on an answer is an error."""

_REASONS: dict[Passed, str] = {
    "path": "not a conversation, such as a list of models",
    "body": "the body is not a JSON object",
    "elsewhere": "the provider keeps the history",
    "content": "content of a kind that ullage does not know",
    "limit": "over the limit, in parts that may not be shortened",
    "settings": "the policy needs a window, and the model's is not known",
    "store": "the store failed",
    "signature": "the body is signed",
    "refused": "the provider refused the request that ullage had made of it",
    "error": "an error in ullage",
    "asked": "the client asked for it",
}


class RunTally:
    """Counts the requests of one run.

    Attributes:
        requests: all of them.
        shortened: those of which something was shortened or left out.
        unchanged: those whose history was sent whole.
        dry: those that were fitted, and sent as they came.
        passed: those that were not fitted, by reason.
        with_tools: those that were given a recall tool.
        recalls: how often a model opened what was left out.
        refused: of all requests those that the upstream answered with an error, by its status; 0:
            those to which no answer came.
        raw_tokens: estimated tokens of the prompts that were fitted, as they came.
        sent_tokens: the same, as they were sent.
    """

    def __init__(self) -> None:
        self.requests = self.shortened = self.unchanged = self.dry = 0
        self.with_tools = self.recalls = self.raw_tokens = self.sent_tokens = 0
        self.passed: Counter[Passed] = Counter()
        self.refused: Counter[int] = Counter()

    def take(self, relayed: Relayed) -> None:
        """Count a request that is over.

        Args:
            relayed: the request and its reply.
        """
        report = relayed.report
        self.requests += 1
        self.recalls += report.recalled
        is_answered = 0 < report.status < _FIRST_ERROR
        if not is_answered:
            self.refused[report.status] += 1
        if report.passed is not None:
            self.passed[report.passed] += 1
            return
        if is_answered:  # nobody bills another
            self.raw_tokens += raw_tokens(relayed)
            self.sent_tokens += report.view_tokens
        if relayed.is_dry:
            self.dry += 1
            return
        self.with_tools += report.has_recall_tools
        if report.is_shortened:
            self.shortened += 1
        else:
            self.unchanged += 1


def summary(
    tally: RunTally,
    spent: ReceiptTotals | None = None,
    conversations: Sequence[ConversationActivity] = (),
) -> list[str]:
    """What a proxy did, in sentences; none if nothing went through it.

    Args:
        tally: the counts of all requests.
        spent: what the receipts of the run come to; None: it has none.
        conversations: those that began without the proxy, or were sent with fewer additions.
    """
    if not tally.requests:
        return []
    return [
        *_counts(tally),
        *_tokens(tally, spent),
        *_dollars(spent),
        *_began_without(conversations),
        *_refused(conversations),
    ]


def _counts(tally: RunTally) -> Iterator[str]:
    passed = tally.passed.total()
    classes = [
        f"{tally.shortened:,} shortened",
        f"{tally.unchanged:,} unchanged",
        f"{passed:,} passed through",
    ]
    if tally.dry:
        classes.append(f"{tally.dry:,} sent as they came (dry run)")
    yield f"{_many(tally.requests, 'request')}: {', '.join(classes)}."
    if passed:
        reasons = [
            f"{count:,} ({_REASONS[reason]})"
            for reason, count in tally.passed.most_common()
        ]
        yield f"Passed through: {', '.join(reasons)}."
    yield from _errors(tally)
    if tally.with_tools:
        yield (
            f"{_many(tally.with_tools, 'request')} had a tool added that opens what was "
            f"shortened; the model used it {_many(tally.recalls, 'time')}."
        )


def _errors(tally: RunTally) -> Iterator[str]:
    """How many requests had no answer, or an error for one."""
    refused = +tally.refused
    unanswered = refused.pop(0, 0)
    if unanswered:
        yield (
            f"No answer came to {_many(unanswered, 'request')}: the upstream could not be reached, "
            "or the client gave up."
        )
    if refused:
        statuses = ", ".join(
            f"{count:,} with status {status}"
            for status, count in refused.most_common()
        )
        yield f"Errors from the upstream: {statuses}."


def _tokens(tally: RunTally, spent: ReceiptTotals | None) -> Iterator[str]:
    if spent is not None and spent.requests:
        sent, raw, remark = spent.sent.prompt, spent.raw.prompt, ""
    else:
        sent, raw, remark = tally.sent_tokens, tally.raw_tokens, " (estimated)"
    if raw:
        yield f"Prompts: {sent:,} tokens, {raw:,} without ullage{_change(sent, raw)}{remark}."


def _dollars(spent: ReceiptTotals | None) -> Iterator[str]:
    if spent is None or not spent.requests:
        return
    if spent.raw_usd or spent.sent_usd:
        decimals = (
            2 if max(spent.raw_usd, spent.sent_usd) >= _CENTS_FROM_USD else 4
        )
        # the difference of what is printed, so that it adds up
        sent, raw = (
            round(spent.sent_usd, decimals),
            round(spent.raw_usd, decimals),
        )
        word = "saved" if raw >= sent else "more"
        share = f", {abs(raw - sent) / raw:.0%}" if raw else ""
        yield (
            f"Cost: ${sent:,.{decimals}f}, ${raw:,.{decimals}f} without ullage: "
            f"${abs(raw - sent):,.{decimals}f} {word}{share}."
        )
        yield (
            "Measured: the tokens that the provider reported, at list price. "
            "Reckoned: the figures without ullage."
        )
    if spent.unreported:
        yield (
            f"The provider reported no usage of {_many(spent.unreported, 'request')}: "
            "estimated."
        )
    if spent.unpriced:
        yield (
            f"No price is known for {_many(spent.unpriced, 'request')}: "
            "not in the sums of dollars."
        )
    if spent.unbilled:
        yield (
            f"Nobody bills {_many(spent.unbilled, 'request')}: the model runs on a machine of "
            "your own."
        )


def _change(sent: int, raw: int) -> str:
    """How much less or more was sent, as a share of what would have been."""
    if sent == raw:
        return ""
    return f": {abs(raw - sent) / raw:.0%} {'less' if sent < raw else 'more'}"


def _began_without(
    conversations: Sequence[ConversationActivity],
) -> Iterator[str]:
    """What was done about conversations that were under way when they were first seen."""
    joined = sum(one.is_joined for one in conversations)
    if joined:
        yield (
            f"{_many(joined, 'conversation')} began without ullage; "
            "shortened as one batch, and from then on."
        )
    waiting = Counter(
        one.standing.why
        for one in conversations
        if one.standing and one.standing.was_joined
    )
    for reason, count in waiting.items():
        yield f"{_many(count, 'conversation')} began without ullage: {reason}."


def _refused(conversations: Sequence[ConversationActivity]) -> Iterator[str]:
    """What upstreams refuse of what is added to requests."""
    refused = Counter(
        addition for one in conversations for addition in one.without
    )
    for addition, count in refused.items():
        yield f"{_many(count, 'conversation')} sent without {addition}: the provider refuses it."


def _many(count: int, word: str) -> str:
    return f"{count:,} {word}{'s' * (count != 1)}"
