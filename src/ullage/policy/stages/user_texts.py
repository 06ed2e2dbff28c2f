"""What the user said as outputs: each text has a ref of its own, so that it can be opened."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator

from ullage.core.history import canon
from ullage.core.history.measures import Fold
from ullage.core.history.transcript import Transcript, leaves_of
from ullage.core.values.effects import Output
from ullage.core.values.messages import Text
from ullage.core.values.notices import Words
from ullage.policy.stages.facts import Utterance, utterances
from ullage.policy.stages.quotes import Texts

NAMED = re.compile(r"ref=([0-9a-z]{16})")
"""Where an account names a ref."""


def output_of(transcript: Transcript, utterance: Utterance) -> Output:
    """What opens a text of the user: the text as it was sent, or as the account quotes it.

    A message of several texts is quoted as one; then that one is set aside.
    """
    index = utterance.index
    for number, item, leaf in leaves_of(transcript.messages[index]):
        if isinstance(leaf, Text) and leaf.text.strip() == utterance.text:
            output = transcript.output((index, number, item))
            if output is not None:
                return output
    return Output(canon.ref_of(utterance.text), utterance.text)


class UserTexts:
    """What the user said in a range, oldest first.

    Attributes:
        utterances: each text with its place.
        texts: the same as `ullage.policy.stages.quotes` takes them.
        question_chars: characters of the questions that were answered.
    """

    def __init__(self) -> None:
        self.utterances: list[Utterance] = []
        self.texts = Texts()
        self.question_chars = 0
        self._refs: list[str] = []
        self._by_ref: dict[str, int] = {}
        self._chars = [0]

    def add(self, transcript: Transcript, index: int) -> None:
        """Take in what the user says in a message."""
        for utterance in utterances(transcript, index, index + 1, "user"):
            number = len(self.utterances)
            self.utterances.append(utterance)
            text = utterance.text
            self.texts.append(text)
            total = self._chars[-1] + len(text)
            self._chars.append(total)
            self.question_chars += len(utterance.question)
            # two texts of the same words have one ref; it opens the first
            ref = output_of(transcript, utterance).ref
            self._refs.append(ref)
            self._by_ref.setdefault(ref, number)

    def ref_of(self, at: int) -> str:
        """What opens a text."""
        return self._refs[at]

    def count_before(self, index: int) -> int:
        """How many of the texts were said before a message."""
        return bisect_left(
            self.utterances, index, key=lambda utterance: utterance.index
        )

    def chars_of(self, count: int) -> int:
        """Characters of the first so many texts."""
        return self._chars[count]

    def named_in(self, account: str) -> list[Utterance]:
        """The texts that an account names by their refs, each once."""
        numbers = set[int]()
        for ref in NAMED.findall(account):
            if ref in self._by_ref:
                numbers.add(self._by_ref[ref])
        return [self.utterances[number] for number in sorted(numbers)]


USER_TEXTS = Fold("ullage.user_texts", UserTexts, UserTexts.add)


def named_in(
    account: str,
    transcript: Transcript,
    start: int,
    stop: int,
) -> Iterator[Output]:
    """The user's texts of a range that an account names by their refs, each once.

    Args:
        account: what is shown in place of the range.
        transcript: the history.
        start: the first message of the range.
        stop: one past the last.
    """
    user_texts = transcript.folded(USER_TEXTS, start, stop)
    for utterance in user_texts.named_in(account):
        yield output_of(transcript, utterance)


def opening(words: Words) -> str:
    """The line that says how to read what an account leaves out of the user's words."""
    if not words.recall:
        return "What is left out is set aside under the ref beside it."
    return f"What is left out is read with {words.read_on('REF', 0)}, REF being the ref beside it."
