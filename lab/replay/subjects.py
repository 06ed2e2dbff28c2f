"""What can be judged at full service: a session under a policy, or a policy of the frame."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lab.replay.adversaries import ADVERSARIES
from lab.replay.chooser import SessionPages
from lab.replay.frame import FRAMES, frame
from lab.replay.past import Frame, Memo, PageLibrary, Past, budget_of
from lab.replay.story import Story
from ullage.core.errors import OverLimitError
from ullage.core.values.usage import Usage
from ullage.tools.replay.calls import request_of, session_for
from ullage.tools.replay.cost.prefix import head_of
from ullage.tools.replay.evidence.demands import Demands
from ullage.tools.replay.gates import Judge
from ullage.tools.replay.policies import policy_named
from ullage.tools.replay.readers import Run
from ullage.wires import FORMATS


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
        """Judge a preset, or a policy of one's own, on a run."""
        self._run = run
        self._session = session_for(run, policy_named(policy), window_tokens)()
        self.library = SessionPages(self._session)
        self._judge, self._wire = Judge(), FORMATS[run.format]
        self._head_tokens = self._judge.text(head_of(run.request))

    def view(self, story: Story, call: int) -> Sequence[Any] | None:
        """See `Subject.view`."""
        history = list(story.messages)
        try:
            fitted = self._session.fit(request_of(self._run, history))
        except OverLimitError:
            return None
        view: Sequence[Any] = self._wire.history(fitted)
        tokens = self._judge.tokens(view) + self._head_tokens
        self._session.observe(Usage(fresh_tokens=tokens))
        return view


def subject_for(
    run: Run, window_tokens: int, policy: str, demands: Demands
) -> SessionSubject | FrameSubject:
    """What to judge under this name: a policy of a session, of the frame, or an adversary.

    Args:
        run: the recording.
        window_tokens: the context window.
        policy: its name.
        demands: what the run will demand; only the oracle looks.
    """
    if policy in FRAMES or policy in ADVERSARIES:
        return FrameSubject(
            run,
            window_tokens,
            ADVERSARIES.get(policy) or frame(policy, demands),
        )
    return SessionSubject(run, window_tokens, policy)
