"""Fingerprints: what decides is known by what it shows, and not by what it is called.

    stages at first sight   what they show of each sample (`ullage.policy.stages.samples`), and
    settings what is never recorded  the lines that stand for what was left out, and the recall
    tools stages under pressure   settings; of ours, what they show of a long history what is
    recorded        the words of records, accounts and placeholders

A fingerprint has two parts. The first is of all that is shown anew at every turn, because
nothing of it is kept: where that changes, what was sent is shown otherwise. The second is of what
is decided under pressure: that is kept in the ledger, so what was shown stays, and only what
comes next is decided otherwise (`ullage.core.turn.resolution`).

One word that is changed in a notice, a record or an account changes the fingerprint. A function
that moves to another module, or one of ours that gets another name, does not change what is shown
anew. A function of the user's may do what no sample shows, so its name and that of its policy,
which holds a version, are part of it too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

from msgspec import Struct

from ullage.core.contract.policy import BesideStore, Policy, Stage, unrecalled
from ullage.core.contract.settings import written
from ullage.core.errors import ConfigError
from ullage.core.history import canon
from ullage.core.history.builder import WindowBuilder
from ullage.core.history.ledger import PARTED
from ullage.core.history.transcript import Transcript
from ullage.core.redaction import Redact
from ullage.core.values import notices
from ullage.core.values.authors import answered_by_user
from ullage.core.values.edits import Drop, ProposedEdit, Replace, ReplaceSpan, Skipped
from ullage.core.values.limits import TextLimit
from ullage.core.values.notices import Words
from ullage.policy.stages.overlong import overlong
from ullage.policy.stages.placeholders import PAGE_GONE
from ullage.policy.stages.quotes import quotes
from ullage.policy.stages.samples import (
    arrivals,
    arriving,
    pressed,
    pressing,
    transcript_of,
)
from ullage.policy.stages.user_texts import opening

_REF = "0123456789abcdef"
_TEXT_LIMIT = TextLimit(900)
_SECRETS = (
    "api_key = 'abc123def456ghi789' password: hunter2x99 "
    "Authorization: Bearer abcdefgh12345678 https://keeper:tide4242@example.org"
)
_SAID = "Mend the gate, and never touch the lamp. " * 40
_SAID_ROOM_CHARS = 600
_POLICIES = 64
"""The fingerprints of so many policies are remembered."""


class _Row(Struct, frozen=True):
    """Stages that are asked at one moment, and what that is called.

    Attributes:
        name: the field of the policy.
        stages: the stages.
    """

    name: str
    stages: tuple[Stage, ...]


class _Asked(Struct, frozen=True, eq=False):
    """What is fingerprinted. Two are equal if they hold the very same stages.

    Stages are compared by identity: a partial has no other equality, and what it is bound with
    need not be hashable.
    """

    policy: Policy
    redact: Redact | None
    user_tools: tuple[str, ...]

    @property
    def _identity(self) -> tuple[Any, ...]:
        policy, redact = self.policy, self.redact
        stages = (*policy.on_arrival, None, *policy.under_pressure, None)
        others = (policy.without_recall, policy.guard, policy.on_request, policy.ahead)
        # a method is another object each time that it is asked for
        function = getattr(redact, "__func__", redact)
        method = (getattr(redact, "__self__", None), function)
        plain = (
            policy.name,
            policy.diagnostic,
            policy.unknown_model,
            policy.spill_directory,
        )
        values = (*stages, *others, policy.toolset, *method)
        return (*map(id, values), *plain, self.user_tools)

    def __hash__(self) -> int:
        return hash(self._identity)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Asked) and self._identity == other._identity


def fingerprint(
    policy: Policy, redact: Redact | None = None, user_tools: tuple[str, ...] = ()
) -> str:
    """What decides, as ledgers hold it: two policies of one fingerprint decide alike.

    It is the same in every process and on every version of Python. It is worked out once for a
    policy, which takes some milliseconds: stages at first sight are run on samples, so they are
    called with histories that no user sent. An error that one raises there is part of what it
    shows, by its type.

    Args:
        policy: the policy.
        redact: takes secrets out of each text, or None.
        user_tools: tools whose results are the user's words, beside those that are known.

    Returns:
        Two parts of 16 characters with a point between: of what is shown anew at every turn, and
        of what is recorded once it is decided.

    Raises:
        ConfigError: a setting of a stage is nothing that another process could know. Its
            ``setting`` names it and its function.
    """
    return _fingerprint(_Asked(policy, redact, user_tools))


@lru_cache(maxsize=_POLICIES)
def _fingerprint(asked: _Asked) -> str:
    parts = (_on_arrival(asked), _under_pressure(asked.policy))
    return PARTED.join(canon.ref_of("\n".join(lines)) for lines in parts)


# ── what is shown anew at every turn ─────────────────────────────────────────────────────


def _on_arrival(asked: _Asked) -> Iterator[str]:
    """What is shown and never recorded, line by line, and the settings by which it is."""
    policy = asked.policy
    bare = unrecalled(policy)
    first = _Row("on_arrival", policy.on_arrival)
    without = _Row("without_recall", bare.on_arrival)
    rows = (first,) if without.stages == first.stages else (first, without)
    for row in rows:
        settings = written(row.stages, row.name, names_ours=False)
        yield settings.text
        yield "" if settings.is_ours else policy.name
    samples = [transcript_of(sample) for sample in arrivals()]
    for recall in (True, False):
        words = _words(policy, recall=recall)
        yield from _lasting_words(words)
        for row in rows:
            yield from _shown_on_arrival(row.stages, samples, words)
    yield written(policy.toolset, "toolset", names_ours=False).text
    yield written(policy.spill_directory, "spill_directory", names_ours=False).text
    yield from sorted(answered_by_user(asked.user_tools))
    if asked.redact is not None:
        yield from _redacted(asked.redact)


def _words(policy: Policy, *, recall: bool) -> Words:
    """The wording of a session with a policy."""
    folder = policy.spill_directory
    if isinstance(folder, BesideStore):
        folder = folder.name
    return Words(recall=recall, toolset=policy.toolset, spill_directory=folder)


def _lasting_words(words: Words) -> Iterator[str]:
    """The notices that stand in a view without a record of them."""
    yield notices.NO_REASONING
    yield words.read_on(_REF, 8_000)
    yield words.cut(_REF, 8_000, 90_000, 8_000)
    yield words.reshaped(_REF, 90_000, "lamps[9]", 8_000, rows=True)
    yield words.more(_REF, 0, 8_000, 90_000)
    yield notices.ref_line(_REF, 90_000)
    yield notices.ref_line(_REF, 90_000, f"spill/{_REF}.txt")
    yield notices.aside("what may not stand here", [(_REF, 900)])
    yield notices.aside("what may not stand here", [])


def _shown_on_arrival(
    stages: Sequence[Stage], samples: Sequence[Transcript], words: Words
) -> Iterator[str]:
    """What stages show of each sample, each seeing what those before it did."""
    for sample in samples if stages else ():
        yield sample.chain[-1].hex()
        for builder in arriving(sample, words):
            for stage in stages:
                yield from _shown_by(stage, builder)


def _redacted(redact: Redact) -> Iterator[str]:
    """What becomes of secrets, and who takes them out, as far as that can be known.

    What a user redacts with may be anything, such as a method of an engine with models of its own.
    """
    try:
        yield written(redact, "redact", names_ours=False).text
    except ConfigError:
        function = getattr(redact, "__func__", type(redact))
        yield f"{function.__module__}.{function.__qualname__}"
    try:
        shown: object = redact(_SECRETS)
    except Exception as error:  # noqa: BLE001 - it is the caller's: told by its type
        shown = error
    # what gives no text is refused where it is first used (`ullage.core.redaction.checked`)
    yield shown if isinstance(shown, str) else type(shown).__qualname__


# ── what is recorded ─────────────────────────────────────────────────────────────────────


def _under_pressure(policy: Policy) -> Iterator[str]:
    """What is decided under pressure: words, settings, and what our stages show."""
    sample, words = transcript_of(pressed()), _words(policy, recall=True)
    yield sample.chain[-1].hex()
    for recall in (True, False):
        yield from _recorded_words(_words(policy, recall=recall))
    for row in _pressed_rows(policy):
        yield row.name
        yield from (written(stage, row.name).text for stage in row.stages)
    yield from _shown_under_pressure(policy, sample, words)
    for cut in overlong(pressing(sample, words).window, _TEXT_LIMIT):
        yield from _shown(cut)
    yield written((policy.unknown_model, policy.diagnostic), policy.name).text


def _pressed_rows(policy: Policy) -> tuple[_Row, ...]:
    """The stages whose decisions are recorded."""
    return (
        _Row("under_pressure", policy.under_pressure),
        _Row("guard", _all_there(policy.guard)),
        _Row("on_request", _all_there(policy.on_request)),
        _Row("ahead", _all_there(policy.ahead)),
        _Row("without_recall", unrecalled(policy).under_pressure),
    )


def _shown_under_pressure(
    policy: Policy, sample: Transcript, words: Words
) -> Iterator[str]:
    """What our stages show of a long history, each function once: settings tell the rest.

    A user's is not run. What it decides is recorded, and it may take long or call out; the name
    of its policy stands for it.
    """
    shown = set[Stage]()
    for row in _pressed_rows(policy):
        for stage in row.stages:
            function = getattr(stage, "func", stage)
            if not written(stage, row.name).is_ours:
                yield policy.name
            elif function not in shown:
                lines = _shown_by(stage, pressing(sample, words))
                shown |= {function} if lines else set()
                yield from lines


def _all_there(stage: Stage | None) -> tuple[Stage, ...]:
    return () if stage is None else (stage,)


def _recorded_words(words: Words) -> Iterator[str]:
    """The notices that a record holds as they were written."""
    yield words.placeholder(_REF, "the tide came in")
    yield words.record(_REF, 2, 9)
    yield words.aside(_REF, 90_000)
    yield words.media(_REF, "an image")
    yield words.arguments(_REF, 90_000)
    yield PAGE_GONE
    yield opening(words)
    # what the user said, where there is no room for all of it
    yield from quotes([_SAID], _SAID_ROOM_CHARS).values()
    yield from quotes([_SAID], _SAID_ROOM_CHARS, ref_of=lambda _: _REF).values()


# ── what a stage shows ───────────────────────────────────────────────────────────────────


def _shown_by(stage: Stage, builder: WindowBuilder) -> list[str]:
    """What a stage shows in a window, which shows it from then on; of one that fails its error."""
    try:
        cuts = stage(builder.window)
        lines = list[str]()
        for cut in () if isinstance(cuts, Skipped) else cuts:
            lines += _shown(cut)
            builder.show(cut.edit)
    except Exception as error:  # noqa: BLE001 - a stage may be anybody's: told by its type
        return [type(error).__qualname__]
    return lines


def _shown(cut: ProposedEdit) -> Iterator[str]:
    """What a cut shows, where, and what it sets aside."""
    edit = cut.edit
    yield str(edit.__struct_config__.tag)
    if isinstance(edit, Replace):
        place = edit.address
        yield f"{edit.kind} {place.kind} {place.id} {place.ordinal} {place.item}"
        yield edit.text
    elif isinstance(edit, (ReplaceSpan, Drop)):
        yield f"{edit.after.hex()} {edit.upto.hex()}"
    if isinstance(edit, ReplaceSpan):
        yield from (edit.ref, *edit.texts)
    yield from (output.ref for output in cut.outputs)
