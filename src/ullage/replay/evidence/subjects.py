"""What can be judged at full service: a session under a policy, or a policy of the frame."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ullage.errors import OverLimitError
from ullage.formats import FORMATS
from ullage.limits import Limits
from ullage.presets import preset
from ullage.replay.evidence.past import Frame, Memo, Past
from ullage.replay.evidence.refs import PageLibrary, SessionLibrary
from ullage.replay.evidence.story import Story
from ullage.replay.gates import Judge
from ullage.replay.prefix import head_of
from ullage.replay.readers import Run
from ullage.replay.sessions import model_of, session_for
from ullage.usage import Usage

__all__ = ["FrameSubject", "SessionSubject", "budget_of"]


def budget_of(run: Run, window_tokens: int, judge: Judge) -> int:
    """The tokens that messages may take in a window: without the head, and with a reserve."""
    wire = FORMATS[run.format]
    asked = wire.head({**run.request, wire.key: []}).asked_output_tokens
    return Limits(window_tokens=window_tokens).prompt_tokens(asked) - judge.text(
        head_of(run.request)
    )


class FrameSubject:
    """A policy of the frame, or an adversary, in one window.

    Attributes:
        library: opens what its newest view names.
    """

    def __init__(self, run: Run, window_tokens: int, policy: Frame) -> None:
        """Judge this policy on a run."""
        self.library = PageLibrary()
        self._policy, self._judge, self._memo = policy, Judge(), Memo()
        self._budget = budget_of(run, window_tokens, self._judge)

    def view(self, story: Story, call: int) -> Sequence[Any]:
        """See `Subject.view`."""
        past = Past(story, len(story.messages), call, self._judge, self._memo)
        shown = self._policy(past, self._budget)
        self.library.pages = shown.pages
        return shown.messages


class SessionSubject:
    """A session under a policy, in one window. It observes the judge's count of its views.

    Attributes:
        library: opens refs by the session's own tools.
    """

    def __init__(self, run: Run, window_tokens: int, policy: str) -> None:
        """Judge a preset on a run."""
        self._run = run
        self._session = session_for(run, preset(policy), window_tokens)()
        self.library = SessionLibrary(self._session)
        self._judge, self._wire = Judge(), FORMATS[run.format]
        self._head_tokens = self._judge.text(head_of(run.request))

    def view(self, story: Story, call: int) -> Sequence[Any] | None:
        """See `Subject.view`."""
        history = list(story.messages)
        request = {**self._run.request, "model": model_of(self._run), self._wire.key: history}
        try:
            view: Sequence[Any] = self._wire.history(self._session.fit(request))
        except OverLimitError:
            return None
        tokens = self._judge.tokens(view) + self._head_tokens
        self._session.observe(Usage(fresh_tokens=tokens))
        return view
