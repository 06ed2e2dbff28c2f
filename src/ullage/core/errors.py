"""Every error ullage raises, drawn as a tree.

    UllageError
    ├── FormatError            the request is not what its format says it is
    │   └── UnsupportedPart    a part we cannot carry through
    ├── OverLimitError         every stage was used and it still does not fit
    ├── BudgetExceeded         an allowance is spent
    │   └── TeamBudgetExceeded a budget of a team's leaves no room for a request
    ├── StoreError             a store failed
    │   ├── StoreFull          nothing more can be kept: the disk or its quota is full
    │   └── RefNotFound        nothing is kept under this ref
    │       ├── SpillNotFound  no spill file has this name
    │       └── TargetNotFound a history has nothing of this name
    ├── SummaryError           the summarising model failed or answered nothing
    ├── StageError             a stage proposed a cut that no view can show
    └── ConfigError            settings contradict one another
        └── NotCarried         something cannot be copied or pickled

Each message has three parts: what happened, with which numbers, what to do. No message
holds content of the conversation, a key, or a path of the user's machine.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches


class UllageError(Exception):
    """Base of every error raised on purpose by ullage. It goes from process to process."""

    def __reduce__(self) -> tuple[object, ...]:
        return _copy, (type(self), self.args, vars(self))


def _copy(
    kind: type[UllageError],
    args: tuple[object, ...],
    attributes: dict[str, object],
) -> object:
    error = kind.__new__(kind, *args)
    vars(error).update(attributes)
    return error


class FormatError(UllageError):
    """The request is not what its format says it is.

    Attributes:
        where: JSON path of the offending place, such as ``messages[3].content[0]``.
        rule: what the format asks for there.
        remedy: what the caller can do.
    """

    def __init__(self, where: str, rule: str, remedy: str) -> None:
        super().__init__(f"{where}: {rule}. {remedy}")
        self.where = where
        self.rule = rule
        self.remedy = remedy


class UnsupportedPart(FormatError):
    """A part cannot be carried into another format without losing something."""


class OverLimitError(UllageError):
    """Every stage was used and the untouchable parts alone are over the limit.

    Attributes:
        limit_tokens: the most the request may hold.
        need_tokens: what it holds after everything that may be cut was cut.
        parts: tokens by name of each untouchable part, largest first.
        has_guard: whether the policy has a guard, which cuts what stages leave too large.
    """

    def __init__(
        self,
        limit_tokens: int,
        need_tokens: int,
        parts: Mapping[str, int],
        *,
        has_guard: bool = True,
    ) -> None:
        self.has_guard = has_guard
        self.limit_tokens = limit_tokens
        self.need_tokens = need_tokens
        self.parts = dict(sorted(parts.items(), key=lambda item: -item[1]))
        listed = ", ".join(
            f"{name} {tokens:,}" for name, tokens in self.parts.items()
        )
        needs = (
            f"the request needs at least {need_tokens:,} tokens and the limit is "
            f"{limit_tokens:,}."
        )
        if has_guard:
            remedy = (
                f"Parts that may not be touched: {listed}. "
                "Shorten the largest of them, lower the output reserve, or use a model with a "
                "larger window."
            )
        else:
            remedy = (
                "The policy has no guard, which would make it fit. Give it one: "
                "Policy(..., guard=ullage.policy.DEFAULT.guard)."
            )
        super().__init__(f"{needs} {remedy}")


class BudgetExceeded(UllageError):
    """An allowance of tokens or money is spent.

    Attributes:
        unit: ``"tokens"`` or ``"usd"``.
        allowance: what was allowed in all.
        spent: what has been used so far.
        reserved: what calls of others that are under way may yet use.
        can_retry: whether the allowance is not spent, and only what others have reserved is in
            the way: the same `fit` may succeed once their calls are over.
    """

    def __init__(
        self, unit: str, allowance: float, spent: float, reserved: float = 0
    ) -> None:
        self.unit = unit
        self.allowance = allowance
        self.spent = spent
        self.reserved = reserved
        self.can_retry = spent < allowance
        what, remedy = (
            (
                "taken for now",
                "Try again once a call of theirs is over, or raise the allowance.",
            )
            if self.can_retry
            else ("spent", "Raise the allowance or end the session.")
        )
        super().__init__(
            f"the budget of {allowance:,.12g} {unit} is {what} ({spent:,.12g} used, "
            f"{reserved:,.12g} reserved by others). {remedy}"
        )


class TeamBudgetExceeded(BudgetExceeded):
    """A budget of a team's leaves no room for a request (`ullage.TeamBudget`).

    Attributes, beside those of `BudgetExceeded`:
        retry_s: after how many seconds the same request may succeed; 0: not by waiting.
        resets_s: when the period ends, in seconds since 1970; 0: that changes nothing.
    """

    def __init__(
        self,
        message: str,
        unit: str,
        allowance: float,
        spent: float,
        reserved: float,
        *,
        retry_s: int = 0,
        resets_s: int = 0,
    ) -> None:
        super().__init__(unit, allowance, spent, reserved)
        self.args = (message,)
        self.retry_s = retry_s
        self.resets_s = resets_s
        self.can_retry = bool(retry_s) and not resets_s


class StoreError(UllageError):
    """A store failed.

    Attributes:
        store: the kind of store, such as ``"sqlite"``.
        operation: what was being done, such as ``"commit"``.
        key: the ref or key concerned, or None.
    """

    def __init__(
        self, store: str, operation: str, reason: str, key: str | None = None
    ) -> None:
        of = f" of {key!r}" if key else ""
        super().__init__(f"{store} store: {operation}{of} failed: {reason}")
        self.store = store
        self.operation = operation
        self.key = key


class StoreFull(StoreError):
    """Nothing more can be kept: the disk or its quota is full.

    A session shows what is new uncut then, as long as it fits.
    """


class RefNotFound(StoreError):
    """Nothing is kept under this ref, or it belongs to another tenant."""

    def __init__(self, store: str, ref: str) -> None:
        super().__init__(
            store,
            "get",
            "nothing is kept under this ref for this tenant. Check the ref against the "
            "notice it came from; refs are case-sensitive",
            ref,
        )
        self.ref = ref


class SpillNotFound(RefNotFound):
    """No spill file has this name: it was never written, or it was cleaned up."""

    def __init__(self, store: str, name: str) -> None:
        super().__init__(store, name)
        self.operation = "retrieve"
        self.args = (
            f"Spill file not found: {name[:80]}. Give the path as the notice names it; if it "
            "was cleaned up, make the call again that the output came from",
        )


class TargetNotFound(RefNotFound):
    """A history has no message, text, batch or decision that is meant by this.

    Attributes:
        messages: how many messages it has.
    """

    def __init__(self, messages: int, wanted: str) -> None:
        super().__init__("the history", wanted)
        self.operation = "find"
        self.messages = messages
        self.args = (
            f"the history of {messages:,} messages has nothing of this name: {wanted[:40]}. Give "
            "m12 for message 12, m12.2 for its second text, a ref, the id of a tool call, or the "
            "name of a batch or decision; `ullage window` lists them",
        )


class SummaryError(UllageError):
    """The summarising model failed, or answered with nothing that can be used."""


class StageError(UllageError):
    """A stage proposed a cut that no view can show, and that could not be repaired.

    It is raised under a strict policy (`ullage.Policy.strict`). Else the view is made without the
    cut, and an event of the kind ``"declined"`` says the same.

    Attributes:
        stage: name of the stage.
        where: the place, such as ``message 12``.
        problem: what is wrong with it, with its numbers.
        remedy: what the stage can do.
    """

    def __init__(
        self, stage: str, where: str, problem: str, remedy: str
    ) -> None:
        super().__init__(f"stage {stage}, {where}: {problem}. {remedy}")
        self.stage = stage
        self.where = where
        self.problem = problem
        self.remedy = remedy


class ConfigError(UllageError):
    """Two settings contradict one another, or one is out of range.

    Attributes:
        setting: name of the setting.
        remedy: how to fix it.
    """

    def __init__(self, setting: str, problem: str, remedy: str) -> None:
        super().__init__(f"{setting}: {problem}. {remedy}")
        self.setting = setting
        self.remedy = remedy


class NotCarried(ConfigError, TypeError):
    """Something cannot go to another process, or should not unasked. The remedy says what can."""


def did_you_mean(name: str, choices: Iterable[str]) -> str:
    """A question that names the choice most like a mistyped one, or ``""``.

    Args:
        name: as it was typed.
        choices: those there are.

    Returns:
        A sentence that ends in a space, to stand before the list of choices.
    """
    (nearest,) = get_close_matches(name, list(choices), n=1) or ("",)
    return f"Did you mean {nearest!r}? " if nearest else ""
