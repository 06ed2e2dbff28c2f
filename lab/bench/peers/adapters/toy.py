"""A peer without a library: everything, or the last messages. The tests speak to it."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from typing import Any

from speaks import Message, Policy, Refused, View, serve

LAST = 6
PAGE_CHARS = 2_000


class Everything(Policy):
    """Sends the history as it is."""

    def view(self, new: Sequence[Message]) -> View:
        """See `Policy.view`."""
        return list(range(len(self.history)))


class LastN(Policy):
    """Sends the last messages, whatever they are: it parts calls from their results."""

    def view(self, new: Sequence[Message]) -> View:
        """See `Policy.view`."""
        with self.timed():
            return list(range(len(self.history)))[-LAST:]


class Shelved(Policy):
    """Leaves a name in place of every result, and opens it on demand, a page at a time."""

    def view(self, new: Sequence[Message]) -> View:
        """See `Policy.view`."""
        return [
            {**message, "content": f"[shelf {index}]"}
            if message["role"] == "tool"
            else index
            for index, message in enumerate(self.history)
        ]

    def refs(self) -> Sequence[str]:
        """See `Policy.refs`."""
        return [
            f"[shelf {i}]"
            for i, m in enumerate(self.history)
            if m["role"] == "tool"
        ]

    def page(self, ref: str) -> str:
        """See `Policy.page`."""
        return self.whole(ref)[:PAGE_CHARS]

    def whole(self, ref: str) -> str:
        """See `Policy.whole`."""
        return self.history[int(ref.strip("[]").split()[1])]["content"]


class Fickle(Everything):
    """Says something else in every process."""

    def view(self, new: Sequence[Message]) -> View:
        """See `Policy.view`."""
        return [
            *super().view(new),
            {"role": "user", "content": f"process {os.getpid()}"},
        ]


class Refusing(Everything):
    """Will not make a view of more than ten messages."""

    def view(self, new: Sequence[Message]) -> View:
        """See `Policy.view`."""
        if len(self.history) > 10:
            raise Refused("more than ten messages")
        return super().view(new)


class Dying(Everything):
    """Ends in the middle of a run."""

    def view(self, new: Sequence[Message]) -> View:
        """See `Policy.view`."""
        if len(self.history) > 10:
            sys.exit("the toy is broken")
        return super().view(new)


class Garbled(Everything):
    """Answers with a number that stands for no message."""

    def view(self, new: Sequence[Message]) -> View:
        """See `Policy.view`."""
        return [len(self.history) + 5]


class Chatty(Everything):
    """Answers with something else than a view."""

    def view(self, new: Sequence[Message]) -> View:
        """See `Policy.view`."""
        return ["hello"]


class Mute(Everything):
    """Answers without a view."""

    def view(self, new: Sequence[Message]) -> Any:
        """See `Policy.view`."""
        return None


class Slow(Everything):
    """Takes its time."""

    def view(self, new: Sequence[Message]) -> View:
        """See `Policy.view`."""
        time.sleep(60)
        return super().view(new)


if __name__ == "__main__":
    serve(
        {
            "everything": Everything,
            "last-n": LastN,
            "shelved": Shelved,
            "fickle": Fickle,
            "refusing": Refusing,
            "dying": Dying,
            "garbled": Garbled,
            "chatty": Chatty,
            "mute": Mute,
            "slow": Slow,
        },
        packages=(),
    )
