"""The playbook of a stage: what every policy promises of its views, tried on whole runs.

    deterministic   the same requests give the same views, whoever fits them
    pure            the request, the window and the history are as they were
    idempotent      the same request again gives the same view, and decides nothing
    prefix-closed   a view depends on nothing that comes after it: who sees the history for the
                    first time arrives at the view of who saw it grow
    legal           a view breaks no rule of its provider that the request does not break
    kept            each ref opens, and what it opens is what the ref was derived from
    smaller         no view is larger than its request

The engine repairs what it can of a cut that breaks a law (`ullage.core.turn.checks`), and leaves
out the rest, so the views of a session are legal and can be opened anyway. A stage that needs it
breaks its promise here, unless ``mends`` is set: it shows less, or something else, than it meant. A
notice that the engine adds may be longer than a short text, so nothing has to be smaller then.

A promise that is not kept is an AssertionError that says which, at which request, on which
wire, and prints the shortest history found that shows it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from contextvars import ContextVar
from copy import deepcopy
from functools import partial
from itertools import pairwise
from typing import Any, Literal

from msgspec import MsgspecError
from msgspec.structs import replace

from ullage import (
    Limits,
    Policy,
    ProposedEdit,
    Session,
    Stage,
    Window,
    problems,
)
from ullage.core.contract.policy import name_of
from ullage.core.errors import OverLimitError, RefNotFound, UllageError
from ullage.core.turn.checks import Checked, check
from ullage.policy import Skipped
from ullage.stores import ref_of
from ullage.testing._samples import smallest
from ullage.testing.runs import (
    MODELS,
    Run,
    boundaries,
    example_runs,
    in_format,
)
from ullage.wires import FORMATS

__all__ = ["check_policy", "check_stage"]


def check_stage(
    stage: Stage,
    *,
    at: Literal["on_arrival", "under_pressure"] = "under_pressure",
    runs: Iterable[Run] | None = None,
    window_tokens: int = 12_000,
    formats: Iterable[str] = tuple(MODELS),
    mends: bool = False,
) -> int:
    """Try a stage alone, with the guard behind it; see `check_policy`.

    Args:
        stage: the stage.
        at: the moment at which it is asked (`ullage.Policy`).
        runs: histories as messages of OpenAI Chat; None: `example_runs`.
        window_tokens: the model's context window; a small one, so that runs need not be long.
        formats: the wires it is tried on.
        mends: whether it is enough that the engine repairs what the stage does wrong.

    Returns:
        How many cuts it made. A stage that made none was not tried: assert that it did.

    Raises:
        AssertionError: a promise is not kept.
    """
    stages: dict[str, Any] = {at: (stage,)}
    policy = Policy(name="checked", **stages)
    return check_policy(
        policy,
        runs=runs,
        window_tokens=window_tokens,
        formats=formats,
        mends=mends,
    )


def check_policy(
    policy: Policy,
    *,
    runs: Iterable[Run] | None = None,
    window_tokens: int = 12_000,
    formats: Iterable[str] = tuple(MODELS),
    mends: bool = False,
) -> int:
    """Try all that a policy's stages do, on whole runs and on every wire.

    A request that cannot be made to fit is passed over.

    Args:
        policy: the policy.
        runs: the runs; None: `example_runs`.
        window_tokens: the window that they have to fit.
        formats: the wires, by name.
        mends: whether cuts that the engine repairs or leaves out are no fault.

    Returns:
        How many cuts its stages made.

    Raises:
        AssertionError: a promise is not kept.
    """
    notes = _Notes(mends)
    watched = replace(
        policy,
        on_arrival=tuple(
            partial(_watched, stage=stage, on_arrival=True)
            for stage in policy.on_arrival
        ),
        under_pressure=tuple(
            partial(_watched, stage=stage, on_arrival=False)
            for stage in policy.under_pressure
        ),
    )
    limits = Limits(window_tokens=window_tokens)
    for run in example_runs() if runs is None else runs:
        for format in formats:
            broken = _broken(watched, run, format, limits, notes)
            if broken:
                short = _shortest(
                    watched,
                    run,
                    format,
                    limits,
                    notes,
                    broken.partition(":")[0],
                )
                broken = (
                    _broken(watched, short, format, limits, notes) or broken
                )
                excerpt = json.dumps(list(short), ensure_ascii=False)
                raise AssertionError(
                    f"{broken}\n  history of {len(short)} messages: {excerpt:.4000}"
                )
    return notes.cuts


class _Notes:
    """What is noted of a trial.

    Attributes:
        cuts: how many cuts were proposed.
        faults: what the engine had to mend or to leave out, since the last request began.
    """

    def __init__(self, mends: bool) -> None:
        self.mends = mends
        self.cuts = 0
        self.faults: list[str] = []


_NOTES: ContextVar[_Notes | None] = ContextVar("notes", default=None)
"""The notes of the run that is tried. They are no setting of a stage: settings decide, and these
do not."""


def _watched(
    window: Window, /, *, stage: Stage, on_arrival: bool
) -> Sequence[ProposedEdit] | Skipped:
    """What a stage proposes, asked twice, with the window compared before and after."""
    state = _state(window)
    proposal = stage(window)
    if _state(window) != state:
        raise AssertionError(
            "pure: the stage changed the window or the history behind it"
        )
    if stage(window) != proposal:
        raise AssertionError(
            "deterministic: asked twice of one window, it wants different cuts"
        )
    notes = _NOTES.get()
    if notes is None or isinstance(proposal, Skipped):
        return proposal  # it is asked of samples too, for its policy's fingerprint
    notes.cuts += len(proposal)
    if not notes.mends:
        checked = check(
            window, name_of(stage), proposal, on_arrival=on_arrival
        )
        notes.faults += _faults(checked)
    return proposal


def _faults(checked: Checked) -> Iterator[str]:
    """What the engine has to mend of cuts, or to leave out, as broken promises."""
    for error in checked.errors:
        yield f"legal: {error}"
    for mend in checked.mends:
        promise = "kept" if mend.law in ("kept", "ref", "named") else "legal"
        yield f"{promise}: the engine has to repair {mend.where}: {mend.remedy}"


def _state(window: Window) -> Any:
    """What a stage could have changed; messages are values, so they are compared by value."""
    edits = tuple(dict(window.shown(index)) for index in range(window.size))
    return window.size, window.tokens, tuple(window.transcript.messages), edits


def _broken(
    policy: Policy, run: Run, format: str, limits: Limits, notes: _Notes
) -> str:
    """The first promise that is not kept, in one line; "" if all are."""
    open_session = partial(
        Session,
        MODELS[format],
        policy=policy,
        limits=limits,
        format=format,
        recall=True,
    )
    warm = open_session()
    twin = open_session()
    for number, stop in enumerate(boundaries(run)):
        try:
            request = in_format(run[:stop], format)
            notes.faults.clear()
            promises = _promises(
                request, format, warm, twin, open_session(), notes
            )
            token = _NOTES.set(notes)
            try:
                broken = next(
                    (promise for promise, is_kept in promises if not is_kept),
                    "",
                )
            finally:
                _NOTES.reset(token)
        except OverLimitError:
            continue
        except AssertionError as error:
            broken = str(error)
        except (UllageError, MsgspecError) as error:
            broken = f"legal: {error}"
        if broken:
            return f"{broken} (request {number} of the run, {format})"
    return ""


def _promises(
    request: dict[str, Any],
    format: str,
    warm: Session,
    twin: Session,
    cold: Session,
    notes: _Notes,
) -> Iterator[tuple[str, bool]]:
    """Each promise in turn, and whether it is kept of the next request of a run."""
    key = FORMATS[format].key
    original = deepcopy(request)
    view = warm.fit(request)
    messages = view[key]
    batches = _batches(warm)
    yield "pure: the request was changed", request == original
    same = twin.fit(original)[key] == messages
    yield "deterministic: another session made another view of it", same
    same = warm.fit(request)[key] == messages and _batches(warm) == batches
    yield "idempotent: the same request again was decided again", same
    same = cold.fit(request)[key] == messages
    yield (
        "prefix-closed: who sees the history at once has another view of it",
        same,
    )
    raw_rules = {problem.rule for problem in problems(request)}
    for problem in problems(view):
        yield f"legal: {problem}", problem.rule in raw_rules
    sizes = [len(json.dumps(one[key], default=str)) for one in (request, view)]
    is_smaller = sizes[1] <= sizes[0] or notes.mends
    yield f"smaller: {sizes[0]:,} characters became {sizes[1]:,}", is_smaller
    for ref in {event.ref for event in warm.events if event.ref}:
        yield (
            f"kept: nothing opens {ref}, or something else",
            _opens(warm, ref),
        )
    for fault in notes.faults:
        yield fault, False


def _batches(session: Session) -> dict[bytes, Any]:
    entries = session.state.ledger.entries.items()
    return {key: entry.batches for key, entry in entries if entry.batches}


def _opens(session: Session, ref: str) -> bool:
    try:
        output = session.store.get(session.settings.tenant, ref)
    except RefNotFound:
        return False
    return ref_of(output.text, output.kind) == ref


def _shortest(
    policy: Policy,
    run: Run,
    format: str,
    limits: Limits,
    notes: _Notes,
    promise: str,
) -> Run:
    """The turns of a run without those that the promise is broken without, too."""
    starts = [
        at
        for at, one in enumerate(run)
        if at and one["role"] in ("assistant", "user")
    ]
    edges = [0, *starts, len(run)]
    turns = [run[low:high] for low, high in pairwise(edges)]

    def joined(parts: Sequence[Run]) -> Run:
        return [message for turn in parts for message in turn]

    def fails(candidates: Sequence[Run]) -> bool:
        whole = joined([turns[0], *candidates])
        if problems(in_format(whole, format)):
            return False
        return _broken(policy, whole, format, limits, notes).startswith(
            f"{promise}:"
        )

    return joined([turns[0], *smallest(turns[1:], fails)])
