"""Gemini generateContent, read from the rules G1 to G12.

Not here: G8 and G9 need what was received, and G10 only permits.
"""

import itertools
import re
from typing import Any

Content = dict[str, Any]

DATA = {
    "text",
    "inlineData",
    "fileData",
    "functionCall",
    "functionResponse",
    "executableCode",
    "codeExecutionResult",
    "toolCall",
    "toolResponse",
}
MODIFIERS = {"thought", "thoughtSignature", "videoMetadata", "mediaResolution"}
EXCLUDED = ("systemInstruction", "tools", "toolConfig")


def broken(request: dict[str, Any]) -> set[str]:
    """The ids of the rules this body breaks."""
    contents: list[Content] = request.get("contents") or []
    found = shape(contents) | order(contents) | signatures(request, contents)
    asked = bool(contents) and bool(of(contents[-1], "functionCall"))
    if not contents or (contents[-1].get("role") == "model" and not asked):
        found.add("G11")
    if request.get("cachedContent") and any(
        request.get(name) for name in EXCLUDED
    ):
        found.add("G12")
    return found


def of(content: Content, field: str) -> list[dict[str, Any]]:
    return [
        p[field]
        for p in content.get("parts") or []
        if p.get(field) is not None
    ]


def shape(contents: list[Content]) -> set[str]:
    """G1 and G2.

    A missing role is optional in the types and read as the user's. Empty text is refused "on
    some surfaces": read as refused, but not under a signature, which G8 lets stand on one.
    A part with a field the document does not list may hold its data there. Calls are the
    model's, as responses are the user's.
    """
    found: set[str] = set()
    for content in contents:
        if content.get("role", "user") not in ("user", "model", "function"):
            found.add("G1")
        theirs = (
            "functionResponse"
            if content.get("role") == "model"
            else "functionCall"
        )
        if of(content, theirs):
            found.add("G1")
        if not content.get("parts"):
            found.add("G2")
        for part in content.get("parts") or []:
            data = [name for name in DATA if part.get(name) is not None]
            empty = part.get("text") == "" and not part.get("thoughtSignature")
            new = not data and set(part) - DATA - MODIFIERS
            if (len(data) != 1 and not new) or empty:
                found.add("G2")
    return found


def order(contents: list[Content]) -> set[str]:
    """G3 to G6.

    Calls at the very end have no responses: G3, and not G11 as well. A second content of
    responses breaks G5, and G3 since the batch is not "all in one content".
    """
    found: set[str] = set()
    for before, here in itertools.pairwise([{}, *contents, {}]):
        asks = before.get("role") == "model"
        follows = before and not asks
        calls = of(before, "functionCall") if asks else []
        results = of(here, "functionResponse")
        if calls and len(calls) != len(results):
            found.add("G3")
        if (
            here.get("role") == "model"
            and of(here, "functionCall")
            and not follows
        ):
            found.add("G4")
        if results and not calls:
            found.add("G5")
        if (
            calls
            and len(calls) == len(results)
            and not matched(calls, results)
        ):
            found.add("G6")
    return found


def matched(
    calls: list[dict[str, Any]], results: list[dict[str, Any]]
) -> bool:
    """G6: by id where both sides have one, else by name, and by order among one name. What
    matches by id is of the same function too; responses with an id choose first."""
    left = list(calls)
    for result in sorted(results, key=lambda one: not one.get("id")):
        own = result.get("id")
        named = [
            c
            for c in left
            if c["name"] == result["name"] and not (own and c.get("id"))
        ]
        fits = [c for c in left if own and c.get("id") == own] or named
        if not fits or fits[0]["name"] != result["name"]:
            return False
        left.remove(fits[0])
    return True


def signatures(request: dict[str, Any], contents: list[Content]) -> set[str]:
    """G7. A content with text beside its responses is not settled; it is read as responses,
    so it does not begin a new turn. A turn with a signature on a call is a signing model's,
    unless the request names a Gemini before 3: the rule is of "Gemini 3+"."""
    match = re.search(r"gemini-(\d+)", request.get("model") or "")
    if match is not None and int(match[1]) < 3:
        return set()
    starts = [
        n
        for n, c in enumerate(contents)
        if c.get("role", "user") != "model" and not of(c, "functionResponse")
    ]
    signed: list[bool] = []
    for content in contents[starts[-1] if starts else 0 :]:
        calls = [
            p
            for p in content.get("parts") or []
            if p.get("functionCall") is not None
        ]
        if any(p.get("thoughtSignature") for p in calls[1:]):
            return {"G7"}
        signed += [bool(p.get("thoughtSignature")) for p in calls[:1]]
    return {"G7"} if not all(signed) and (match or any(signed)) else set()
