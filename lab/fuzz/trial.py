"""One history tried: every request it would have sent, and all that may be wrong with a view.

legal      no rule of `ullage.wires.rules` is broken, compared with what was returned
opaque     what only the provider reads is byte for byte as it was, in place, or gone whole
bound      no reasoning is shown behind anything that was changed since it was thought
sticky     what was sent before is sent again, unless an event tells of an edit
fits       and is not refused
kept       every text is in the view, or is read back by following what is visible
cold       a session without memory, and the same ledger, gives the same bytes
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from lab import reading
from lab.fuzz import opaque
from lab.fuzz.borders import may_call
from lab.fuzz.bound import Bound
from lab.fuzz.breakages import result_text, rewritten
from lab.fuzz.coverage import EDITS, Cell, exercised
from lab.fuzz.histories import Case, is_bound
from lab.fuzz.stages import policy_of
from lab.returned import problems
from ullage import Limits, Session
from ullage.core.contract.policy import name_of
from ullage.core.errors import OverLimitError, UllageError
from ullage.core.history.transcript import leaves_of
from ullage.core.history.window import Window
from ullage.core.turn.changes import key_of
from ullage.core.turn.rendering import layout
from ullage.core.values.events import Event
from ullage.core.values.toolset import RECALL_TOOLS
from ullage.policy.stages.shrink import BEFORE_NEW, Tier, reducible_tokens
from ullage.tools.replay.gates import unseen
from ullage.wires import FORMATS
from ullage.wires.rules.checker import check_of

REFUSABLE = frozenset(
    (
        "compaction",
        "mixed server tool",
        "late result",
        "never answered",
        "late approval",
    )
)
"""Only with one of these may the default policy leave a history refused: what stands before a
compaction, and what waits for an answer, may not be condensed. Chance may begin a run so late
that too much stands before it, and a broken history may end within an open turn."""
RECALL_NAMES = frozenset(
    (*RECALL_TOOLS, *(f"ullage_{name}" for name in RECALL_TOOLS))
)
_GUARD = frozenset(("cut", "condensed"))
"""The edits by which the guard makes room where nothing else is left to go."""
_MARK_CHARS = 40
_BEFORE_DOCUMENTS = (*BEFORE_NEW, Tier.NEW)
"""What is cut before a document of the user's."""
_SPARE_TOKENS = 100
"""What a text that was cut may have over the least: its size in characters is an estimate."""
_REWRITES = frozenset(EDITS) - {"truncated"}


class Tried(Struct):
    """What came of one history.

    Attributes:
        wrong: what is wrong with any of its views.
        edits: the kinds of edits made.
        refused: what may not be touched is over the limit, so no view was given.
        cells: the rules whose subject stood near an edit, with the kind of the edit.
    """

    wrong: list[str]
    edits: set[str]
    cells: set[Cell]
    refused: bool = False


def try_case(case: Case) -> Tried:
    """Show every beginning of a history that was to be sent, and judge each view."""
    tried = Tried([], set(), set())
    if not case.repair and (illegal := _illegal(case)):
        tried.wrong.append(f"the generated history is not legal: {illegal}")
        return tried
    trial = _Trial(case, tried)
    try:
        for length in case.lengths:
            trial.show(length)
        trial.end()
    except OverLimitError as error:
        tried.refused = True
        if not (case.policy or case.repair or case.features & REFUSABLE):
            tried.wrong.append(f"refused: {error}")
    except UllageError as error:
        tried.wrong.append(f"{type(error).__name__}: {error}")
    except Exception as error:  # noqa: BLE001 - any other error is a finding as well
        tried.wrong.append(f"crash: {error!r}")
    return tried


def _illegal(case: Case) -> str:
    """The rules that the history breaks before anything was done to it."""
    checker, fed = check_of(case.format, case.request), 0
    for length in case.lengths:
        for message in case.messages[fed:length]:
            checker.feed(message)
        fed = length
        if found := checker.problems():
            return f"{found[0].rule} at {length}, {found[0].sentence}"
    return ""


class _Trial:
    """The session of one history, and what its last view was."""

    def __init__(self, case: Case, tried: Tried) -> None:
        self.case = case
        self.tried = tried
        # where no recall tools are offered the guard alone acts, or the policy as always
        self.spares_unopened = len(case.messages) % 4 == 1
        self.session = self._session()
        self.checker = check_of(case.format)
        self.shown: list[Any] = []
        self.view: dict[str, Any] = {}
        self.model = ""
        self.was_noted = False
        self.joins = False
        self.bound = (
            Bound()
            if "bound reasoning" in case.features and not case.repair
            else None
        )
        earlier = (change.earlier for change in case.changes)
        self.own = {id(message) for message in (*case.messages, *earlier)}
        self.sealed = opaque.blocks(case.messages)
        self.compacted: set[str] = set()

    def _session(self, share: float = 1.0, **more: Any) -> Session:
        case = self.case
        limit = int(case.limit_tokens * share)
        limits = Limits(window_tokens=limit, output_reserve_tokens=0)
        policy = policy_of(case.policy)
        if not self.spares_unopened:
            policy = replace(policy, without_recall=None)
        return Session(
            str(case.request["model"]),
            policy=policy,
            limits=limits,
            format=case.format,
            # tools that are added to a history under way take all bound reasoning with them
            recall=len(case.messages) % 2 == 0 or "auto",
            repair=case.repair,
            **more,
        )

    def _request(self, length: int) -> dict[str, Any]:
        """The request for a beginning of the history, for the model of that time."""
        case = self.case
        choice = case.choices.get(length, {})
        request = {**case.request, **choice, case.key: case.beginning(length)}
        del request["model"]
        request[FORMATS[case.format].model_field] = self._model(length)
        return request

    def _model(self, length: int) -> str:
        return self.case.models[self.case.lengths.index(length)]

    def show(self, length: int) -> None:
        """The view of the history so far."""
        case, told = self.case, len(self.session.events)
        request = self._request(length)
        view = self.session.fit(request)
        if "compaction" in case.features:
            self.compacted = opaque.newest_compaction(case.beginning(length))
        shown, kinds = (
            view[case.key],
            set(map(_kind_of, self.session.events[told:])),
        )
        # what was sent is cut as one batch
        self.joins = is_joined = "joined" in kinds
        kinds &= set(EDITS)
        grew = shown[: len(self.shown)] == self.shown
        if grew:
            self._feed(shown, length)
        else:
            # a late result is mended too
            may_change = is_joined or case.repair or case.is_changed_at(length)
            if not kinds & _REWRITES and not may_change:
                self._wrong("a view changed and no event told of it", length)
            self._anew(view, length)
        if kinds:
            self.tried.edits |= kinds
            near = _near(shown, self.own)
            self.tried.cells |= exercised(case.format, near, kinds)
            self._opaque(shown, length)
            whole = (
                "reasoning" in kinds or "one thought a turn" in case.features
            )
            if whole and not case.repair:
                self._break(
                    self._problems(view, case.beginning(length)), length
                )
        if self.bound is not None:
            as_before = grew and self._model(length) == self.model
            reply = case.messages[length : self._next(length)]
            behind = self.bound.judge(shown, reply, as_before)
            if behind and is_bound(self._model(length)):
                self._wrong(
                    "reasoning is shown behind what was changed", length
                )
        self._whole(shown, kinds, length)
        self._borders(view, kinds, length)
        self.was_noted = _is_noted(self.session)
        if not case.policy and not case.repair and unseen(self.session):
            self._wrong(
                "a new result is not in the first view after it came (G8)",
                length,
            )
        self.shown, self.view, self.model = shown, view, self._model(length)

    def _whole(self, shown: list[Any], kinds: set[str], length: int) -> None:
        """What is asked of every view as a whole."""
        case, window = self.case, self.session.window
        if window.estimate > case.limit_tokens:
            self._wrong("a view is over the limit", length)
        asked, first = (
            _first_of_user(case.beginning(length)),
            _first_of_user(shown),
        )
        if first != asked and not _goes_on(case.format, first, asked):
            self._first_changed(first, asked, length)
        if window.summaries:
            self._parted(window, length)
        if (
            "manual thinking" in case.features
            and "reasoning" in kinds
            and not case.repair
        ):
            self._frozen(case.messages[:length], length)

    def _first_changed(self, first: Any, asked: Any, length: int) -> None:
        """What became of the first message: of it documents alone may be cut, and not too early."""
        if _words(first)[: len(_words(asked))] != _words(asked):
            self._wrong("the first user message is not as it was", length)
            return
        # what was cut before stays so, and joining decides at many places at once
        earlier = _first_of_user(self.shown)
        is_new = self.was_noted and _documents(earlier) != _documents(first)
        is_judged = is_new and not self.joins
        is_judged = is_judged and not self.case.policy and not self.case.repair
        if not is_judged:
            return
        window = self._window_that_cut(first, length)
        spare_tokens = reducible_tokens(window, tiers=_BEFORE_DOCUMENTS)
        if spare_tokens > _SPARE_TOKENS:
            self._wrong(
                "a document is cut, and results have room to give", length
            )

    def _window_that_cut(self, first: Any, length: int) -> Window:
        """The window of the place at which documents of the first message were cut.

        Behind a message that changed every place is decided anew, and each with what it had:
        what stands there may be condensed at a later one.
        """
        case = self.case
        for place in case.lengths:
            if place >= length:
                break
            session = self._session(state=self.session.state)
            messages = case.beginning(length)[:place]
            view = session.fit({**self._request(place), case.key: messages})
            shown = _first_of_user(view[case.key])
            if _documents(shown) == _documents(first):
                return session.window
        return self.session.window

    def _borders(
        self, view: dict[str, Any], kinds: set[str], length: int
    ) -> None:
        """What is asked at the borders of a conversation, of the default policy alone."""
        case = self.case
        if case.policy:
            return
        closed = "allowed tools always" in case.features and not may_call(
            view, RECALL_NAMES
        )
        # of a conversation that was met under way what is new may be cut before tools are offered
        is_spared = self.spares_unopened and "joined" not in case.features
        if is_spared and closed and "truncated" in kinds:
            self._wrong(
                "a result is cut, and what opens it may not be called", length
            )
        for change in case.changes:
            text = result_text(case.messages[change.index])
            is_new = self.was_noted and change.until == length
            if (
                is_new
                and text
                and not self._is_seen(text, view[case.key], kinds)
            ):
                self._wrong(
                    "a changed result is not in the first view that holds it",
                    length,
                )

    def _is_seen(self, text: str, shown: list[Any], kinds: set[str]) -> bool:
        """Whether a text is in a view at the size it has on arrival, or the guard took its room."""
        if kinds & _GUARD:
            return True
        head = text[:_MARK_CHARS]
        return any(head in visible for visible in reading.visible(shown))

    def _feed(self, shown: list[Any], length: int) -> None:
        for message in shown[len(self.shown) :]:
            self.checker.feed(message)
        self._break(self.checker.problems(), length)

    def _anew(self, view: dict[str, Any], length: int) -> None:
        """Judge a view that is not the last one with more behind it."""
        case = self.case
        self.checker = check_of(case.format)
        for message in view[case.key]:
            self.checker.feed(message)
        self._break(self.checker.problems(), length)

    def _problems(
        self, view: dict[str, Any], history: list[Any] | None
    ) -> list[Any]:
        """What a whole request breaks. Repairing puts no thinking before a turn that has none."""
        case = self.case
        found = problems(case.format, view, history=history)
        if (
            not found
            or not case.repair
            or "manual thinking" not in case.features
        ):
            return found
        given = {**case.request, case.key: case.messages}
        own = {"A14", "B11"} & {
            problem.rule for problem in problems(case.format, given)
        }
        return [problem for problem in found if problem.rule not in own]

    def _break(self, found: Sequence[Any], length: int) -> None:
        for problem in found:
            self._wrong(f"{problem.rule}, {problem.sentence}", length)

    def _opaque(self, shown: list[Any], length: int) -> None:
        foreign = [message for message in shown if id(message) not in self.own]
        if opaque.changed(foreign, self.sealed):
            self._wrong("something opaque was changed", length)
        if not self.case.repair and opaque.stubbed(
            shown, self.own, self.case.messages
        ):
            self._wrong("the arguments of a signed call were changed", length)
        if self.compacted and not self.compacted <= set(opaque.blocks(shown)):
            self._wrong("what the provider compacted is gone", length)

    def _parted(self, window: Window, length: int) -> None:
        """A run that was condensed does not begin within a reply."""
        messages = window.transcript.messages
        start = window.summaries[0].start if window.summaries else 0
        if messages[start].role == messages[start - 1].role == "assistant":
            self._wrong("a reply is parted", length)

    def _frozen(self, messages: list[Any], length: int) -> None:
        """With manual thinking only the guard may take thinking out of an open turn (A14)."""
        transcript, ledger = (
            self.session.window.transcript,
            self.session.state.ledger,
        )
        batches = ledger.at(transcript.decision_key(len(transcript))).batches
        newest = next(
            m for m in reversed(messages) if m["role"] == "assistant"
        )
        is_open = bool(list(reading.results(messages[-1])))
        guard = policy_of(self.case.policy).guard
        is_guarded = guard is not None and any(
            batch.stage == name_of(guard) for batch in batches
        )
        if is_open and opaque.is_signed(newest) and not is_guarded:
            self._wrong("a batch took the thinking of an open turn", length)

    def _next(self, length: int) -> int:
        return next(
            (other for other in self.case.lengths if other > length), length
        )

    def _wrong(self, what: str, length: int) -> None:
        self.tried.wrong.append(f"{what}, at {length}")

    def end(self) -> None:
        """What is judged once, on the last view."""
        case = self.case
        if not self.tried.edits:
            return
        history = None if case.repair else case.messages
        self._break(self._problems(self.view, history), len(case.messages))
        if opaque.reordered(self.shown, self.sealed):
            self._wrong(
                "opaque parts are in another order", len(case.messages)
            )
        for text in lost(self.session, case.messages, self.shown):
            self._wrong(
                f"a text of {len(text)} characters is lost", len(case.messages)
            )
        turn = (
            case.number // 4 % 9
        )  # four formats in turn; each of these costs a whole session
        if turn < len(_DEARER):
            _DEARER[turn](self)

    def _cold(self) -> None:
        """A session without memory gives the same bytes, and the sums are those of the view.

        The default policy has nothing to add when it is asked again; chance may have.
        """
        case = self.case
        counted = _recounted(self.session, self.shown)
        if abs(counted - self.session.window.tokens) > _seams(
            case.messages, self.shown
        ):
            self._wrong("the view is not counted as it is", len(case.messages))
        request = self._request(len(case.messages))
        cold = self._session(
            state=self.session.state, store=self.session.store
        ).fit(request)
        again = self.session.fit(request) if case.policy else self.view
        if cold != again:
            self._wrong("a cold start gives another view", len(case.messages))

    def _tighter(self) -> None:
        """What was decided stands, whatever the limit is now."""
        request = self._request(len(self.case.messages))
        before, chain = (
            self.session.state.ledger,
            self.session.window.transcript.chain,
        )
        decided = [
            key for key in dict.fromkeys(chain) if before.at(key).batches
        ]
        state, store = self.session.state, self.session.store
        tight = self._session(share=0.7, state=state, store=store)
        try:
            tight.fit(request)
        except OverLimitError:
            return
        after = tight.state.ledger
        if any(
            after.at(key).batches != before.at(key).batches
            for key in decided[:-1]
        ):
            self._wrong(
                "what was decided was decided again", len(self.case.messages)
            )

    def _rewrite(self) -> None:
        """A caller changed a result: no edit of the old text may stand for the new one."""
        case = self.case
        messages, old = rewritten(case.messages, case.number)
        if not old or case.repair:
            return
        try:
            view = self.session.fit(
                {**self._request(len(case.messages)), case.key: messages}
            )
        except OverLimitError:
            return
        texts = (
            " ".join(text.split()) for text in reading.visible(view[case.key])
        )
        begins = " ".join(old.split())[:_MARK_CHARS]
        if any(begins in text for text in texts):
            self._wrong("a rewritten result is shown as it was", len(messages))


_DEARER = (_Trial._cold, _Trial._tighter, _Trial._rewrite)


def _is_noted(session: Session) -> bool:
    """Whether the ledger holds what the history held in the last view."""
    transcript = session.window.transcript
    key = key_of(transcript)
    shown = None if key is None else session.state.ledger.at(key).shown
    return shown is not None and shown.chain == transcript.chain[-1]


def _first_of_user(messages: list[Any]) -> Any:
    """The first message of a view that the user wrote."""
    return next((m for m in messages if m.get("role") == "user"), None)


def _goes_on(format: str, first: Any, asked: Any) -> bool:
    """Whether a message of Converse says what it did, and more behind it: a summary stands there,
    since the user says one message at a time (B2).
    """
    if format != "bedrock-converse":
        return False
    return first["content"][: len(asked["content"])] == asked["content"]


def _words(message: Any) -> list[Any]:
    """What a message says beside its documents."""
    content = message["content"]
    if isinstance(content, str):
        return [content]
    return [block for block in content if not _is_document(block)]


def _documents(message: Any) -> list[Any]:
    """The documents of a message."""
    content = message["content"]
    if isinstance(content, str):
        return []
    return [block for block in content if _is_document(block)]


def _is_document(block: Any) -> bool:
    return "document" in (block.get("type"), *block)


def _kind_of(event: Event) -> str:
    """The kind of an edit: arguments that were pruned are stubbed."""
    return (
        "stubbed"
        if event.kind == "pruned" and event.where.endswith(", call")
        else event.kind
    )


def _near(shown: list[Any], own: set[int]) -> list[Any]:
    """The messages of a view that are not the caller's own, and two around each."""
    at = [
        index for index, message in enumerate(shown) if id(message) not in own
    ]
    near = {other for index in at for other in range(index - 2, index + 3)}
    return [message for index, message in enumerate(shown) if index in near]


def _seams(messages: list[Any], shown: list[Any]) -> int:
    """How many texts stand in the place of an image of Ollama's: there a message has one text, so
    that each is joined to another, which may be a token more or less than both.
    """
    images = [
        sum(len(m.get("images", ())) for m in some)
        for some in (messages, shown)
    ]
    return images[0] - images[1]


def _recounted(session: Session, shown: list[Any]) -> int:
    """Tokens of a view, counted from its own messages.

    A window counts a summary as a message of its own, also where it goes into one of the user's.
    """
    window, wire = session.window, FORMATS[str(session.state.format)]
    meter, total = window.meter, window.head_tokens
    messages = [wire.parse(raw, "view") for raw in shown]
    if wire.wants_turns(meter.model):
        total += meter.overhead.message * (len(layout(window)) - len(messages))
    read_from = max(
        (at for at, message in enumerate(messages) if message.supersedes),
        default=0,
    )
    for message in messages[read_from:]:
        leaves = leaves_of(message)
        total += meter.framing(message) + sum(
            meter.leaf(leaf) for _, _, leaf in leaves
        )
    return total


def lost(
    session: Session, messages: list[Any], shown: list[Any]
) -> Iterator[str]:
    """Texts that are neither visible nor reachable from what is."""
    texts, opened = list(reading.visible(shown)), dict[str, str]()
    missing = {*_texts(messages), *opaque.arguments(messages)}.difference(
        texts
    )
    if not missing:
        return
    reading.reachable(session, texts, opened)
    everything = "\n".join([*texts, *opened.values()])
    for text in missing.difference(opened.values()):
        if text not in everything and json.dumps(text)[1:-1] not in everything:
            yield text


def _texts(messages: list[Any]) -> Iterator[str]:
    """Every text that was said or given."""
    for message in messages:
        yield from reading.texts_of(reading.content_of(message))
        for _, found in reading.results(message):
            yield from found
