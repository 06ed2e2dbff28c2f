"""What a window holds and what to decide of it, as tools and prompts of an MCP server.

    tool call                     the model decides, under its own name, if it may
    prompt (a slash command)  ──▶ a code  ──▶ tool call with the code: the user decides

Clients let a user, and nobody else, run a prompt. So a prompt gives out a code, for one decision of
its kind, and a call that brings the code is the user's. Some clients fetch a prompt before they
know what the user typed behind it; the model carries that over, and the code stands for it.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal, NamedTuple, TypeAlias

from ullage.core.errors import ConfigError, UllageError
from ullage.core.turn.hand import described
from ullage.core.values.decisions import Verb
from ullage.session.decisions.entries import ConversationEntry, newest_of
from ullage.session.stored.conversation import (
    StoredConversation,
    conversation_of,
    conversations,
    decide,
    decision_of,
    under_way,
)
from ullage.session.stored.estimate import estimate_of
from ullage.stores import Store
from ullage.tools.hand.authority import MODEL, check_rank
from ullage.tools.hand.described import sentence, window_lines

Decides: TypeAlias = Literal["user", "model"]
SHOW = "window_show"
_VERBS: dict[str, Verb] = {
    f"window_{verb}": verb
    for verb in ("pin", "drop", "restore", "undo", "note")
}
_CODES = 64
"""So many codes of prompts are waited for; older ones count no more."""
_RECENT_S = 600
"""Conversations that were used so lately may be the one that is meant."""
_BESIDE = 5
"""Of less than one of so many parts of the largest: what an agent asks beside its conversation."""
_LISTED = 20
_NEXT = f"{SHOW}(start={{start}})"
_USER = "user"


class _Code(NamedTuple):
    """What a user asked for by a prompt.

    Attributes:
        verb: for which it counts.
        text: of a note; ``""``: the call brings it.
    """

    verb: Verb
    text: str


def _property(description: str, kind: str = "string", **more: Any) -> Any:
    return {"type": kind, "description": description, **more}


_CONVERSATION = _property(
    "Its name (c…) in window_show. Default: the newest, if it alone is in use"
)
_SHARED = {
    "reason": _property("Why, in a few words, for the record"),
    "code": _property("The code that the user's command gave, if one did"),
    "conversation": _CONVERSATION,
    "dry_run": _property(
        "Only say what it would change and about how many tokens", "boolean"
    ),
}
_TARGET = _property(
    "m12 for message 12, m12.2 for one text of it, a ref, or a tool call's id"
)


def _tool(
    name: str,
    description: str,
    properties: Mapping[str, Any],
    *required: str,
) -> dict[str, Any]:
    is_reader = name == SHOW
    return {
        "name": name,
        "description": description,
        "inputSchema": {
            "type": "object",
            "properties": dict(properties),
            "required": list(required),
        },
        "annotations": {
            "readOnlyHint": is_reader,
            "destructiveHint": False,
            "openWorldHint": False,
        },
    }


_SHOWN = _tool(
    SHOW,
    "Show what is in the context window: each text by name, whole, in short or set aside; "
    "batches and decisions.",
    {
        "conversation": _CONVERSATION,
        "start": _property("The first message to show, from 1", "integer"),
    },
)
_WHEN = _property(
    "batch: with the next batch; end: a copy at the end; now: at once in its place",
    enum=["batch", "end", "now"],
)
_TOOLS: tuple[dict[str, Any], ...] = (
    _tool(
        "window_pin",
        "Keep a text whole in every request from the next one on.",
        {"target": _TARGET, **_SHARED},
        "target",
    ),
    _tool(
        "window_drop",
        "Take a text out of the window; its ref still opens it.",
        {"target": _TARGET, **_SHARED},
        "target",
    ),
    _tool(
        "window_restore",
        "Bring back, whole, what left the window.",
        {"target": _TARGET, "when": _WHEN, **_SHARED},
        "target",
    ),
    _tool(
        "window_undo",
        "Take back a batch (b…) or a decision (d…) that window_show names.",
        {"target": _property("Its name; none: the newest"), **_SHARED},
    ),
    _tool(
        "window_note",
        "Have a text stand in every request from the next one on.",
        {"text": _property("The text"), **_SHARED},
    ),
)
_ASKED = {
    "pin": ("Keep something whole in the window", "what"),
    "drop": ("Take something out of the window", "what"),
    "restore": ("Bring something back into the window", "what"),
    "undo": ("Take back a batch or a decision", "what"),
    "note": ("Add a note to every request", "text"),
}
_PROMPTS: tuple[dict[str, Any], ...] = (
    {
        "name": "window",
        "description": "Show what is in the context window",
        "arguments": [],
    },
    *(
        {
            "name": verb,
            "description": description,
            "arguments": [
                {
                    "name": argument,
                    "description": "In your words, or by its name",
                    "required": verb != "undo",
                }
            ],
        }
        for verb, (description, argument) in _ASKED.items()
    ),
)


class HandTools:
    """The tools and prompts by which a user, or a model, decides about a store's conversations.

    Args:
        store: where the conversations are kept.
        tenant: whose they are.
        decides: ``"user"``: a call needs the code of a prompt; ``"model"``: it does not.
        author: the name of the user in the record.
        now_s: the time, in seconds since 1970.

    Raises:
        ConfigError: the user's name is the model's.

    Attributes:
        tools: see `ullage.doors.mcp.serving.MoreTools`.
        prompts: see there.
        about: see there.
    """

    tools: tuple[dict[str, Any], ...] = (_SHOWN, *_TOOLS)
    prompts = _PROMPTS

    def __init__(
        self,
        store: Store,
        tenant: str,
        decides: Decides,
        *,
        author: str = "",
        now_s: Callable[[], float] = time.time,
    ) -> None:
        if author == MODEL:
            raise ConfigError(
                "author",
                "this is the name under which the model decides",
                "Give the user's.",
            )
        self._store = store
        self._tenant = tenant
        self._decides = decides
        self._author = author or _USER
        self._now_s = now_s
        self._codes: dict[str, _Code] = {}
        who = "you may decide; what the user decided counts before it"
        if decides == "user":
            who = "only the user decides, by commands that give you a code"
        self.about = f"The window_… tools show and change what you see: {who}."

    def call(
        self, name: str, arguments: Mapping[str, Any]
    ) -> tuple[str, bool]:
        """Call one of the tools; see `ullage.doors.mcp.serving.MoreTools`."""
        try:
            if name == SHOW:
                return self._shown(arguments), False
            return self._decided(_VERBS[name], arguments), False
        except UllageError as error:
            return str(error), True

    def prompt(self, name: str, arguments: Mapping[str, Any]) -> str | None:
        """The text of one of the prompts; see `ullage.doors.mcp.serving.MoreTools`."""
        if name == "window":
            return (
                f"Call {SHOW}, and tell me what is whole, in short, set aside and pinned. "
                "Name what takes most room."
            )
        if name not in _ASKED:
            return None
        verb = _VERBS[f"window_{name}"]
        argument = _ASKED[name][1]
        words = str(arguments.get(argument, "")).strip()
        is_known = verb == "note" and "$" not in words
        code = self._new_code(_Code(verb, words if is_known else ""))
        if verb == "note":
            return (
                f"I want this note in every request from now on: {words}\n\n"
                f'Call window_note with this text, word for word, and code="{code}". '
                "Say in one line that it stands."
            )
        meant = words or "what was done last"
        return (
            f"I decide about the context window: {verb} {meant}\n\n"
            f"If that is no name such as m12, find what I mean with {SHOW}. "
            f'Then call window_{verb} for it with code="{code}". Say in one line what was '
            "decided, under which name, and what it costs. Decide nothing else."
        )

    def _new_code(self, code: _Code) -> str:
        key = secrets.token_hex(4)
        self._codes[key] = code
        if len(self._codes) > _CODES:
            del self._codes[next(iter(self._codes))]
        return key

    # ── deciding ─────────────────────────────────────────────────────────────────────

    def _decided(self, verb: Verb, arguments: Mapping[str, Any]) -> str:
        """Decide, and say what the next request shows otherwise."""
        author, text = self._authorised(verb, arguments)
        stored = self._conversation(arguments)
        decision = decision_of(
            stored,
            verb,
            _text(arguments, "target") or None,
            text=text,
            when=_when(arguments),
            reason=_text(arguments, "reason"),
            author=author,
        )

        def check(stored: StoredConversation) -> None:
            check_rank(stored, decision)

        check(stored)
        description = described(decision, stored.transcript)
        estimate = estimate_of(stored, decision)
        if arguments.get("dry_run") is True:
            return sentence(stored, "", description, estimate)
        name = decide(self._store, stored, decision, check)
        self._codes.pop(_text(arguments, "code"), None)
        what = sentence(stored, name, description, estimate)
        return f'{what} Decided by {author}. To take it back: window_undo(target="{name}").'

    def _authorised(
        self, verb: Verb, arguments: Mapping[str, Any]
    ) -> tuple[str, str]:
        """Who decides, and the text of a note.

        Raises:
            ConfigError: the model may not, and there is no code of the user's for it.
        """
        text = _text(arguments, "text")
        given = _text(arguments, "code")
        code = self._codes.get(given)
        if code is not None and code.verb == verb:
            return self._author, code.text or text
        if self._decides == "model" and not given:
            return MODEL, text
        problem = "only the user decides here"
        if given:
            problem = f"this is no code for one {verb} of the user's that is still open"
        raise ConfigError(
            "code",
            problem,
            f"The user runs the command {verb} of this server.",
        )

    def _conversation(
        self, arguments: Mapping[str, Any]
    ) -> StoredConversation:
        """The conversation that is meant.

        Raises:
            ConfigError: there is none of this name, or several are in use and none is named.
        """
        name = _text(arguments, "conversation")
        listed = conversations(self._store, self._tenant)
        if not listed:
            raise ConfigError(
                "conversation",
                "this store has no outline of one",
                "Outlines are kept unless that is switched off.",
            )
        if not name:
            recent = self._recent(listed)
            newest = recent[0] if recent else newest_of(listed)
            if len(recent) > 1 or newest is None:
                raise ConfigError(
                    "conversation",
                    "several are in use",
                    "Name yours:\n" + "\n".join(_listed(recent)),
                )
            name = newest.outline.name
        for entry in listed:
            if entry.outline.name == name:
                return conversation_of(
                    self._store, self._tenant, entry.outline
                )
        raise ConfigError(
            "conversation",
            "there is none of this name",
            "Name one of:\n" + "\n".join(_listed(listed)),
        )

    def _recent(
        self, listed: list[ConversationEntry]
    ) -> list[ConversationEntry]:
        """The conversations that may be the one that asks: in use, and no small one beside it."""
        start_s = self._now_s() - _RECENT_S
        # what a client went on with was used later: of older ones nothing has to be known
        recent = under_way(
            [entry for entry in listed if entry.used_s >= start_s]
        )
        largest = max((entry.outline.tokens for entry in recent), default=0)
        return [
            entry
            for entry in recent
            if entry.outline.tokens * _BESIDE >= largest
        ]

    # ── showing ──────────────────────────────────────────────────────────────────────

    def _shown(self, arguments: Mapping[str, Any]) -> str:
        """A window, or the conversations there are where none is named and several may be meant."""
        stored = self._conversation(arguments)
        start = arguments.get("start")
        start = start if isinstance(start, int) and start > 0 else 1
        return "\n".join(window_lines(stored, start, _NEXT))


def _text(arguments: Mapping[str, Any], name: str) -> str:
    value = arguments.get(name, "")
    return value if isinstance(value, str) else ""


def _when(arguments: Mapping[str, Any]) -> Any:
    when = arguments.get("when", "batch")
    if when not in ("batch", "end", "now"):
        raise ConfigError(
            "when", "it is not a time", 'Give "batch", "end" or "now".'
        )
    return when


def _listed(listed: list[ConversationEntry]) -> Iterator[str]:
    for entry in listed[:_LISTED]:
        outline = entry.outline
        agent = f" of {outline.agent}" if outline.agent else ""
        yield (
            f'- {outline.name}: {outline.length:,} messages{agent}, begins "{outline.title}"'
        )
