"""A policy is data: which stages run at which moment, with which settings and words.

There are three moments: on arrival, before a result was ever sent, when cutting
breaks nothing; under pressure, in rare deep batches; and the guard, when the hard limit is near.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Literal, Protocol

from msgspec import Struct
from msgspec.structs import replace

from ullage.core.contract.settings import written
from ullage.core.errors import ConfigError
from ullage.core.history.window import Window
from ullage.core.values.edits import ProposedEdit, Skipped
from ullage.core.values.events import Event
from ullage.core.values.limits import TextLimit
from ullage.core.values.toolset import OURS, Toolset


class Stage(Protocol):
    """Decides: a plain function from a window to the cuts it wants.

    It is given the `Window` at one boundary of the history: what is shown there, counted against
    its limits. Writing to it raises AttributeError. It returns, in order, a `ProposedEdit` for
    each leaf (`Replace`), range of messages (`ReplaceSpan`) or reasoning (`Drop`) that is to be
    shown otherwise, with the outputs that this sets aside; or `Skipped`, where it was time to cut
    and it could not be done. A `ReplaceSpan` may cover older ones whole or stand beside them; one
    that would cut another in two has no effect. Each stage sees what the ones before it did.

    It has to be pure and deterministic: the same window, the same cuts, in any process, without
    clock, chance, state or network; and nothing after ``window.size`` may count. Settings are
    keyword-only and bound with `functools.partial`, so that they belong to the policy's
    fingerprint (`ullage.policy.fingerprint`). They are plain data, frozen structs or dataclasses of
    it, or functions: anything else is refused when a session is made. What the stage works out of
    each message it asks of the window as a `Measure`, so that a turn costs what is new.
    """

    def __call__(self, window: Window, /) -> Sequence[ProposedEdit] | Skipped:
        """Return the edits that the stage proposes at this boundary; none if it is content."""


class Safeguards(Struct, frozen=True, kw_only=True):
    """What runs behind every policy, whatever its stages are.

    Attributes:
        media: cuts the media that the provider would refuse, wherever a policy has a guard.
        overlong: cuts each text that is longer than the provider takes of one.
        stalled: an event for each new summary of what an agent does over and over. It is given the
            window before the cuts, and the cuts.
    """

    media: Callable[[Window], Sequence[ProposedEdit]]
    overlong: Callable[[Window, TextLimit], Sequence[ProposedEdit]]
    stalled: Callable[[Window, Iterable[ProposedEdit]], Sequence[Event]]


class BesideStore(Struct, frozen=True):
    """A directory beside the session's SQLite file.

    Attributes:
        name: what it is called.
        otherwise: the directory where the store is no SQLite file, or None for no files.
    """

    name: str = "spill"
    otherwise: str | None = None


class Policy(Struct, frozen=True, kw_only=True):
    """Which stages run when.

    Attributes:
        name: name and version; pinned for a session and kept with every batch.
        on_arrival: stages that see each result once, before it is first sent. Pure in
            the result, its tool and this policy, so nothing of them is kept.
        under_pressure: stages asked in order at every boundary; each has its own trigger.
        without_recall: what becomes of the policy where no recall tools are offered, so that
            what leaves the view cannot be opened by the model (`leaving_out`). None: it stays
            as it is.
        guard: the stage behind every policy that makes the view fit, or None to have
            `OverLimitError` instead.
        on_request: what `Session.compact` runs, or None if the policy has no compaction.
        ahead: the compaction that an `AsyncSession` begins beside its turns, at a softer
            threshold than that under pressure, or None for none.
        toolset: the recall tools and their words.
        unknown_model: what is done about a model whose window is not known: ``"warn"``
            assumes a cautious window and reports it, ``"error"`` raises, a number is taken
            as the window in tokens.
        diagnostic: what a batch made under pressure writes to stderr, or None. Fields:
            ``count`` (results cut) and ``reported_tokens``.
        spill_directory: the directory in which every output set aside is also kept as a
            file that the agent's own tools can read, a rule that finds one, or None.
        strict: whether a cut that no view can show is a `ullage.core.errors.StageError`. Else
            the view is made without it, and an event says so.
    """

    name: str
    on_arrival: tuple[Stage, ...] = ()
    under_pressure: tuple[Stage, ...] = ()
    without_recall: Callable[[Policy], Policy] | None = None
    guard: Stage | None = None
    on_request: Stage | None = None
    ahead: Stage | None = None
    toolset: Toolset = OURS
    unknown_model: Literal["warn", "error"] | int = "warn"
    diagnostic: str | None = None
    spill_directory: str | BesideStore | None = None
    strict: bool = False

    def __post_init__(self) -> None:
        if self.without_recall is not None and not callable(
            self.without_recall
        ):
            kind = type(self.without_recall).__name__
            raise ConfigError(
                "without_recall",
                f"a function of the policy is expected, not a {kind}",
                "Give partial(leaving_out, stages=(…)), or None for a policy that stays as it is.",
            )


def unrecalled(policy: Policy) -> Policy:
    """The policy of a conversation to which no recall tools are offered.

    It is asked for at every turn, and worked out once for each policy.
    """
    if policy.without_recall is None:
        return policy
    entry = _UNRECALLED.get(id(policy))
    # another object may have its id by now
    if entry is None or entry[0] is not policy:
        entry = policy, policy.without_recall(policy)
        if len(_UNRECALLED) >= _MOST_POLICIES:
            _UNRECALLED.clear()
        _UNRECALLED[id(policy)] = entry
    return entry[1]


_MOST_POLICIES = 64
_UNRECALLED: dict[int, tuple[Policy, Policy]] = {}
"""By the id of a policy: the policy itself, and what becomes of it without recall tools."""


def leaving_out(policy: Policy, /, *, stages: Sequence[Stage]) -> Policy:
    """A policy without these stages; with every other one that was put into it.

    Args:
        policy: the policy.
        stages: what is left out. A stage that runs with other settings is another one.
    """
    omitted = {written(stage, "without_recall").text for stage in stages}

    def rest(row: Sequence[Stage]) -> tuple[Stage, ...]:
        remaining = list[Stage]()
        for stage in row:
            if written(stage, name_of(stage)).text not in omitted:
                remaining.append(stage)
        return tuple(remaining)

    return replace(
        policy,
        on_arrival=rest(policy.on_arrival),
        under_pressure=rest(policy.under_pressure),
    )


_CHOSEN = ("within", "otherwise")
"""The settings in which a stage that chooses has the two stages that it chooses between."""


def name_of(stage: Stage) -> str:
    """What a stage is called: the name of its function.

    One that chooses between two others is called as they are, for they propose the edits.
    """
    settings = getattr(stage, "keywords", {})
    if all(name in settings for name in _CHOSEN):
        names = dict.fromkeys(name_of(settings[name]) for name in _CHOSEN)
        return " or ".join(names)
    function = getattr(stage, "func", stage)
    return str(getattr(function, "__name__", "stage"))
