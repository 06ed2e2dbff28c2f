"""Fingerprints: what decides is known by what it shows, and not by what it is called.

    stages on arrival       what they show of each sample (`ullage.policy.stages.samples`), and
                            their settings
    what is never recorded  the lines that stand for what was left out, and the recall tools
    stages under pressure   their settings; of ours, what they show of a long history
    what is recorded        the words of records, accounts and placeholders

A fingerprint has two parts. The first is of all that is shown again at every turn, because
nothing of it is kept: where that changes, what was sent is shown otherwise. The second is of what
is decided under pressure: that is kept in the ledger, so what was shown stays, and only what
comes next is decided otherwise (`ullage.core.turn.resolution`).

One word that is changed in a notice, a record or an account changes the fingerprint. A function
that moves to another module, or one of ours that gets another name, does not change what is shown
again. A function of the user's may do what no sample shows, so its name and that of its policy,
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
from ullage.core.values.edits import (
    Drop,
    ProposedEdit,
    Replace,
    ReplaceSpan,
    Skipped,
)
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


class _StageRow(Struct, frozen=True):
    """Stages that run at one moment, and what that is called.

    Attributes:
        name: the field of the policy.
        stages: the stages.
    """

    name: str
    stages: tuple[Stage, ...]


class _Key(Struct, frozen=True, eq=False):
    """What is fingerprinted. Two are equal if they hold the very same stages.

    Stages are compared by identity: a partial has no other equality, and what it is bound with
    need not be hashable.
    """

    policy: Policy
    redact: Redact | None
    user_tools: tuple[str, ...]

    @property
    def _identity(self) -> tuple[Any, ...]:
        policy = self.policy
        redact = self.redact
        objects = (
            *policy.on_arrival,
            None,
            *policy.under_pressure,
            None,
            policy.without_recall,
            policy.guard,
            policy.on_request,
            policy.ahead,
            policy.toolset,
            # a method is another object each time that it is looked up; what it is made of is not
            getattr(redact, "__self__", None),
            getattr(redact, "__func__", redact),
        )
        return (
            *[id(item) for item in objects],
            policy.name,
            policy.diagnostic,
            policy.unknown_model,
            policy.spill_directory,
            self.user_tools,
        )

    def __hash__(self) -> int:
        return hash(self._identity)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Key) and self._identity == other._identity


def fingerprint(
    policy: Policy,
    redact: Redact | None = None,
    user_tools: tuple[str, ...] = (),
) -> str:
    """What decides, as ledgers hold it: two policies of one fingerprint decide alike.

    It is the same in every process and on every version of Python. It is worked out once for a
    policy, which takes some milliseconds: stages on arrival are run on samples, so they are
    called with histories that no user sent. An error that one raises there is part of what it
    shows, by its type.

    Args:
        policy: the policy.
        redact: takes secrets out of each text, or None.
        user_tools: tools whose results are the user's words, beside those that are known.

    Returns:
        Two parts of 16 characters with a point between: of what is shown again at every turn, and
        of what is recorded once it is decided.

    Raises:
        ConfigError: a setting of a stage is nothing that another process could know. Its
            ``setting`` names it and its function.
    """
    return _fingerprint(_Key(policy, redact, user_tools))


@lru_cache(maxsize=_POLICIES)
def _fingerprint(key: _Key) -> str:
    on_arrival = "\n".join(_on_arrival(key))
    under_pressure = "\n".join(_under_pressure(key.policy))
    return PARTED.join(
        [canon.ref_of(on_arrival), canon.ref_of(under_pressure)]
    )


# ── what is shown anew at every turn ─────────────────────────────────────────────────────


def _on_arrival(key: _Key) -> Iterator[str]:
    """What is shown and never recorded, line by line, and the settings by which it is."""
    policy = key.policy
    rows = [_StageRow("on_arrival", policy.on_arrival)]
    without_recall = unrecalled(policy).on_arrival
    if without_recall != policy.on_arrival:
        rows.append(_StageRow("without_recall", without_recall))
    for row in rows:
        # ours are known by what they show: two that have the same settings are written alike
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
    yield written(
        policy.spill_directory, "spill_directory", names_ours=False
    ).text
    yield from sorted(answered_by_user(key.user_tools))
    if key.redact is not None:
        yield from _redacted(key.redact)


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
    stages: Sequence[Stage],
    samples: Sequence[Transcript],
    words: Words,
) -> Iterator[str]:
    """What stages show of each sample, each seeing what those before it did."""
    if not stages:
        return
    for sample in samples:
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
        result: object = redact(_SECRETS)
    except Exception as error:  # noqa: BLE001 - it is the caller's: told by its type
        result = error
    # what gives no text is refused where it is first used (`ullage.core.redaction.checked`)
    yield result if isinstance(result, str) else type(result).__qualname__


# ── what is recorded ─────────────────────────────────────────────────────────────────────


def _under_pressure(policy: Policy) -> Iterator[str]:
    """What is decided under pressure: words, settings, and what our stages show."""
    sample = transcript_of(pressed())
    words = _words(policy, recall=True)
    yield sample.chain[-1].hex()
    for recall in (True, False):
        yield from _recorded_words(_words(policy, recall=recall))
    for row in _pressed_rows(policy):
        yield row.name
        for stage in row.stages:
            yield written(stage, row.name).text
    yield from _shown_under_pressure(policy, sample, words)
    window = pressing(sample, words).window
    for cut in overlong(window, _TEXT_LIMIT):
        yield from _shown(cut)
    yield written((policy.unknown_model, policy.diagnostic), policy.name).text


def _pressed_rows(policy: Policy) -> tuple[_StageRow, ...]:
    """The stages whose decisions are recorded."""
    return (
        _StageRow("under_pressure", policy.under_pressure),
        _StageRow("guard", _all_there(policy.guard)),
        _StageRow("on_request", _all_there(policy.on_request)),
        _StageRow("ahead", _all_there(policy.ahead)),
        _StageRow("without_recall", unrecalled(policy).under_pressure),
    )


def _shown_under_pressure(
    policy: Policy,
    sample: Transcript,
    words: Words,
) -> Iterator[str]:
    """What our stages show of a long history, each function once: settings tell the rest.

    A user's is not run. What it decides is recorded, and it may take long or call out; the name
    of its policy stands for it.
    """
    functions = set[Stage]()
    for row in _pressed_rows(policy):
        for stage in row.stages:
            function = getattr(stage, "func", stage)
            if not written(stage, row.name).is_ours:
                yield policy.name
            elif function not in functions:
                lines = _shown_by(stage, pressing(sample, words))
                # one that shows nothing with these settings may with others
                if lines:
                    functions.add(function)
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
    yield from quotes(
        [_SAID], _SAID_ROOM_CHARS, ref_of=lambda _: _REF
    ).values()


# ── what a stage shows ───────────────────────────────────────────────────────────────────


def _shown_by(stage: Stage, builder: WindowBuilder) -> list[str]:
    """What a stage shows in a window, which shows it from then on; of one that fails its error."""
    try:
        cuts = stage(builder.window)
        if isinstance(cuts, Skipped):
            return []
        lines = list[str]()
        for cut in cuts:
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
        address = f"{place.kind} {place.id} {place.ordinal} {place.item}"
        yield f"{edit.kind} {address}"
        yield edit.text
    elif isinstance(edit, (ReplaceSpan, Drop)):
        yield f"{edit.after.hex()} {edit.upto.hex()}"
    if isinstance(edit, ReplaceSpan):
        yield edit.ref
        yield from edit.texts
    for output in cut.outputs:
        yield output.ref
