"""The rules of Gemini generateContent, G0 to G8, G11 and G12 (`provider-rules` §1.D).

Field names are read in both spellings: the wire's (functionCall) and the SDK's
(function_call). A string, or a part that stands alone, is a content, as the SDK takes it.

What is left to the provider: whether a model asks for signatures at all. So G7 holds the
steps of the current turn against one another: where one step is signed, all must be. Of a
request whose ``model`` is Gemini 3 or later, `head_problems` asks a signature of every step; of
an earlier one none is asked.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

from ullage.history.pairing import At, Pairing
from ullage.wires.base import snake
from ullage.wires.gemini.blocks import KNOWN, PARTS, ROLES
from ullage.wires.gemini.models import signs_calls, signs_no_calls
from ullage.wires.rules.problem import Problem, Report, Wire, kind_of, plain_message

__all__ = ["Check", "head_problems", "signature_problems", "spared"]

SENTINELS = frozenset(("skip_thought_signature_validator", "context_engineering_is_the_way_to_go"))

_BASE64 = re.compile(r"[A-Za-z0-9+/_-]*={0,2}\Z").match
_NOT_BESIDE_A_CACHE = ("systemInstruction", "tools", "toolConfig")


class Check:
    """One pass over the contents.

    The state: which call each response answers; how many calls the content before held; the role
    before; and the
    steps of the current turn, each as (where its first call stands, whether it is signed), and
    where a later call of a step is signed too. Earlier turns are not validated.
    """

    def __init__(self) -> None:
        self._report = Report()
        self._count = 0
        self._role: str | None = None
        self.pairs = Pairing()
        self._names: dict[At, str] = {}
        self._asked: list[At] = []
        self.steps: list[tuple[str, bool]] = []
        self._oversigned: list[str] = []

    def feed(self, message: Any) -> None:
        """Judge the next content."""
        where = f"contents[{self._count}]"
        self._count += 1
        role, parts = _opened(message)
        if type(role) is not str or role not in ROLES:
            self._report.add("G1", f"{where}.role", "no such role in this format")
            role = "user"  # for every other rule, so that one mistake is reported once
        if not parts:
            self._report.add("G2", f"{where}.parts", "a content has at least one part")
        for index, part in enumerate(parts):
            self._part(part, role, f"{where}.parts[{index}]")
        self.pairs.speaker(is_model=role == "model")
        at = self._count - 1
        called, answered = (
            [(at, n) for n, part in enumerate(parts) if _get(part, kind) is not None]
            for kind in ("functionCall", "functionResponse")
        )
        self._answers(answered, parts, where)
        if role == "model":
            self._calls(called, parts, where)
        elif not answered:
            self.steps, self._oversigned = [], []
        self._role = role

    def close(self) -> list[Problem]:
        """Everything found, and what a request that ends here lacks; may be asked anytime."""
        end = Report()
        if not self._count:
            end.add("G11", "contents", "at least one content is asked for")
        if self._asked:
            where = f"contents[{self._asked[0][0]}]"
            end.add("G3", where, "the calls of this step have no responses")
        elif self._role == "model":
            end.add("G11", f"contents[{self._count - 1}]", "the last content is the model's")
        if any(signed for _, signed in self.steps):
            _need_signatures(self.steps, end)
        for where in self._oversigned:
            end.add("G7", where, "only the first call of a step carries a signature")
        return self._report.found + end.found

    # -- within a content -----------------------------------------------------------------

    def _part(self, part: Any, role: str, where: str) -> None:
        if type(part) is not dict:
            self._report.add("G0", where, f"a part is an object, and it is {kind_of(part)}")
            return
        data = [name for name in PARTS if _get(part, name) is not None]
        unknown = [key for key in part if _camel(str(key)) not in KNOWN]
        if len(data) != 1 and not (unknown and not data):
            self._report.add("G2", where, f"one field with data is asked for, here are {len(data)}")
            return
        if not data:
            return  # a part from the future
        if unknown:
            names = ", ".join(map(repr, unknown))
            self._report.add("G0", where, f"fields the API does not know: {names[:200]}")
        sealed = _get(part, "thoughtSignature")
        if isinstance(sealed, str) and not _BASE64(sealed):
            self._report.add("G0", where, "a signature is base64, and this one is not")
        (kind,) = data
        if kind == "text":
            self._text(part, where)
        else:
            self._body(_get(part, kind), kind, where)
        roles = PARTS[kind].roles
        if role not in roles:
            self._report.add("G1", where, f"a {kind} does not stand in a content of {role}")

    def _text(self, part: Wire, where: str) -> None:
        text = part["text"]
        if not isinstance(text, str):
            self._report.add("G0", where, f"text is a string, and it is {kind_of(text)}")
        elif not text and not _get(part, "thoughtSignature"):
            self._report.add("G2", where, "text must not be empty")

    def _body(self, body: Any, kind: str, where: str) -> None:
        if type(body) is not dict:
            self._report.add("G0", where, f"{kind} is an object, and it is {kind_of(body)}")
            return
        for name, wanted in PARTS[kind].needs.items():
            held = _get(body, name)
            if wanted is str and not (isinstance(held, str) and held):
                self._report.add("G0", where, f"{kind} names its function")
            elif wanted is dict and type(held) is not dict:
                self._report.add("G0", where, f"{name} is an object, and it is {kind_of(held)}")
            elif held is None:
                self._report.add("G0", where, f"{kind} has its {name}")
        args = body.get("args", {}) if kind == "functionCall" else {}
        if type(args) is not dict:
            self._report.add("G0", where, f"args is an object, and it is {kind_of(args)}")

    # -- between contents -----------------------------------------------------------------

    def _answers(self, answered: list[At], parts: list[Any], where: str) -> None:
        """G3, G5, G6: the responses here against the calls of the content before."""
        asked, self._asked = self._asked, []
        fits = [self._fits(at, _body(parts[at[1]], "functionResponse")) for at in answered]
        if answered and not asked:
            self._report.add("G5", where, "these responses do not follow the content of their call")
        elif len(answered) != len(asked):
            sentence = f"{len(answered)} responses to {len(asked)} calls"
            self._report.add("G3", where, sentence)
        elif not all(fits):
            self._report.add("G6", where, "a response fits none of the calls before it")

    def _fits(self, at: At, body: Wire) -> bool:
        """Whether a response answers a call of the content before, under its name."""
        name = str(body.get("name") or "")
        call = self.pairs.result(at, str(body.get("id") or ""), name)
        return call is not None and call[0] == at[0] - 1 and self._names[call] == name

    def _calls(self, called: list[At], parts: list[Any], where: str) -> None:
        """G4 and G7: the calls here against what stands before them."""
        if not called:
            return
        if self._role not in ("user", "function"):
            self._report.add("G4", where, "no user content stands directly before these calls")
        first, *siblings = (parts[number] for _, number in called)
        self.steps.append((where, bool(_signature(first))))
        self._oversigned += [where] if any(_signature(part) for part in siblings) else []
        for at in called:
            body = _body(parts[at[1]], "functionCall")
            self._names[at] = str(body.get("name") or "")
            self.pairs.call(at, str(body.get("id") or ""), self._names[at])
        self._asked = called


def spared(body: Wire) -> tuple[str, ...]:
    """The rules about contents that do not hold under this head: G7, before Gemini 3."""
    return ("G7",) if signs_no_calls(body.get("model")) else ()


def head_problems(body: Wire, contents: Any) -> list[Problem]:
    """The rules about everything but the contents: G12, and what the model asks of G7."""
    report = Report()
    config = body.get("config")
    outside = {**body, **(config if type(config) is dict else {})}
    if _get(outside, "cachedContent"):
        for name in _NOT_BESIDE_A_CACHE:
            if _get(outside, name):
                report.add("G12", name, f"{name} and cachedContent exclude each other")
    if signs_calls(body.get("model")):
        check = Check()
        for content in contents if isinstance(contents, (list, tuple)) else ():
            check.feed(plain_message(content))
        if not any(signed for _, signed in check.steps):  # else `close` has reported it
            _need_signatures(check.steps, report)
    return report.found


def signature_problems(contents: Any, history: Sequence[Any]) -> list[Problem]:
    """G7 and G8 against the contents as they came: no signature moved, made up or lost.

    A signature is compared as bytes: the SDK writes it in another alphabet of base64.
    """
    report = Report()
    came = [(_without(part), _signature(part)) for _, part in _signed_parts(history)]
    signatures = {signature for _, signature in came}
    for where, part in _signed_parts(contents):
        signature = _signature(part)
        if signature not in SENTINELS and (_without(part), signature) not in came:
            known = "stands on another part" if signature in signatures else "is not known"
            report.add("G8", where, f"this signature {known}")
    bare = [part for part, _ in came if _get(part, "functionCall")]
    check = Check()
    for content in contents if isinstance(contents, (list, tuple)) else ():
        check.feed(plain_message(content))
    lost = {where for where, signed in check.steps if not signed}
    for where, part in _all_parts(contents):
        if where.rpartition(".parts")[0] in lost and _without(part) in bare:
            report.add("G7", where, "this call came with a signature")
    return report.found


def _need_signatures(steps: list[tuple[str, bool]], report: Report) -> None:
    for where, signed in steps:
        if not signed:
            report.add("G7", where, "the first call of this step has no signature")


# -- reading ------------------------------------------------------------------------------


@lru_cache(maxsize=256)
def _camel(key: str) -> str:
    return re.sub("_([a-z])", lambda found: found[1].upper(), key)


def _get(thing: Any, name: str) -> Any:
    """A field under its name on the wire or, in the SDK's spelling, in Python."""
    if type(thing) is not dict:
        return None
    found = thing.get(name)
    return thing.get(snake(name)) if found is None else found


def _opened(message: Any) -> tuple[Any, list[Any]]:
    """Role and parts of a content, or of what the SDK takes for one."""
    if isinstance(message, str):
        return "user", [{"text": message}]
    if isinstance(message, list):
        return "user", [{"text": part} if isinstance(part, str) else part for part in message]
    if type(message) is not dict:
        return None, []
    if "parts" not in message and "role" not in message:
        return ("model" if _get(message, "functionCall") else "user"), [message]
    parts = message.get("parts")
    role = message.get("role")
    return "user" if role is None else role, parts if isinstance(parts, list) else []


def _body(part: Any, name: str) -> Wire:
    """The fields of a call or response; none if it is no object."""
    body = _get(part, name)
    return body if type(body) is dict else {}


def _signature(part: Any) -> str:
    """A part's signature in one alphabet of base64, or ``""``."""
    found = _get(part, "thoughtSignature")
    if isinstance(found, bytes):  # as the SDK's own types hold it
        return _signature({"thoughtSignature": b64encode(found).decode()})
    if not isinstance(found, str) or found in SENTINELS:
        return found if isinstance(found, str) else ""
    return found.replace("-", "+").replace("_", "/").rstrip("=")


def _without(part: Wire) -> dict[str, Any]:
    return {_camel(str(k)): v for k, v in part.items() if _camel(str(k)) != "thoughtSignature"}


def _all_parts(contents: Any) -> Iterator[tuple[str, Any]]:
    for at, content in enumerate(contents if isinstance(contents, (list, tuple)) else ()):
        for index, part in enumerate(_opened(plain_message(content))[1]):
            if type(part) is dict:
                yield f"contents[{at}].parts[{index}]", part


def _signed_parts(contents: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    return ((where, part) for where, part in _all_parts(contents) if _signature(part))
