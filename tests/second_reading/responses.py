"""OpenAI Responses, read from the rules R1 to R16, and C6 for the length of a `call_id`.

Not here: R4, R8, R9 and R13 need what was received; R11 and R12 are accepted with a loss;
R15 and R16 only describe.
"""

import re
from typing import Any

Item = dict[str, Any]

ID = re.compile(r"[a-zA-Z0-9_-]+")
PREFIX = {
    "function_call": "fc_",
    "message": "msg_",
    "reasoning": "rs_",
    "custom_tool_call": "ctc_",
}
"""The four that R5 names; it also says "...". The other items of the model have some prefix of
their own, so none of these four. A reference has that of what it names, and what is the
client's own was given no id by the server."""

OPEN = {
    "function_call",
    "custom_tool_call",
    "shell_call",
    "apply_patch_call",
    "computer_call",
}
OURS = {
    "compaction_trigger",
    "configuration_update",
    "additional_tools",
    "mcp_approval_response",
}


def broken(request: dict[str, Any]) -> set[str]:
    """The ids of the rules this body breaks."""
    given = request.get("input") or []
    items: list[Item] = [] if isinstance(given, str) else list(given)
    found = (
        pairs(request, items)
        | reasoning(items)
        | ids(items)
        | stored(request, items)
    )
    if request.get("previous_response_id") and request.get("conversation"):
        found.add("R10")
    if any(kind(i) == "compaction_trigger" for i in items[:-1]):
        found.add("R14")
    return found


def kind(item: Item) -> str:
    """The type of an item; the easy form of a message leaves it out."""
    return item.get("type") or (
        "message" if "role" in item else "item_reference"
    )


def pairs(request: dict[str, Any], items: list[Item]) -> set[str]:
    """R1, R2 and C6.

    R1 asks for the output "somewhere after", so where it stands among later items is free.
    R2 does not speak of order; since outputs stand after, one in front of its call breaks it.
    R1 names two types; the other calls that clients run are read the same way. An id asked
    twice while it is open leaves one of the calls without an output of its own.
    Calls marked `async`, and outputs without `call_id`, are too open to judge. What a server
    holds, or an `item_reference` names, may be the call of any output behind it.
    An approval that was asked for is read like a call, and what the user said to it like its
    output: servers refuse a request for approval that has none.
    """
    found: set[str] = set()
    elsewhere = bool(
        request.get("previous_response_id") or request.get("conversation")
    )
    held = elsewhere
    for at, item in enumerate(items):
        name, call = kind(item), item.get("call_id")
        held = held or name == "item_reference"
        if len(call or "") > 64:
            found.add("C6")
        if name in OPEN and call and not item.get("async"):
            found |= set() if answered(item, items[at + 1 :]) else {"R1"}
        if (
            name.removesuffix("_output") in OPEN
            and name not in OPEN
            and call
            and not held
        ):
            calls = [kind(i) for i in items[:at] if i.get("call_id") == call]
            found |= set() if name.removesuffix("_output") in calls else {"R2"}
    return found | approvals(items, elsewhere)


def approvals(items: list[Item], elsewhere: bool) -> set[str]:
    """R1 and R2 of approvals."""
    found: set[str] = set()
    waiting: set[str] = set()
    asked: set[str] = set()
    for item in items:
        if kind(item) == "mcp_approval_request":
            found |= {"R1"} if item["id"] in waiting else set()
            waiting.add(item["id"])
            asked.add(item["id"])
        elif kind(item) == "item_reference":
            elsewhere = True
        elif kind(item) == "mcp_approval_response":
            known = item["approval_request_id"] in asked or elsewhere
            found |= set() if known else {"R2"}
            waiting.discard(item["approval_request_id"])
    return found | ({"R1"} if waiting else set())


def answered(call: Item, after: list[Item]) -> bool:
    """Whether the next item with its `call_id`, and of its type, is an output, not a call again."""
    name, own = kind(call), call["call_id"]
    types = (kind(i) for i in after if i.get("call_id") == own)
    return (
        next((t for t in types if t in (name, f"{name}_output")), name) != name
    )


def reasoning(items: list[Item]) -> set[str]:
    """R3: after a reasoning item, or a run of them, something the model made must stand."""
    for at, item in enumerate(items):
        if kind(item) != "reasoning":
            continue
        after = next(
            (i for i in items[at + 1 :] if kind(i) != "reasoning"), None
        )
        if after is None or by_us(after):
            return {"R3"}
    return set()


def by_us(item: Item) -> bool:
    """Whether an item is the client's, not the model's."""
    if kind(item) == "message":
        return item.get("role") != "assistant"
    return kind(item) in OURS or kind(item).endswith("_output")


def ids(items: list[Item]) -> set[str]:
    """R5 and R6."""
    found: set[str] = set()
    seen: set[str] = set()
    for item in items:
        own = item.get("id")
        if own is None:
            continue
        if not ID.fullmatch(own) or not fits(item, own):
            found.add("R5")
        if own in seen:
            found.add("R6")
        seen.add(own)
    return found


def fits(item: Item, own: str) -> bool:
    """Whether an id may be that of such an item."""
    if kind(item) in PREFIX:
        return own.startswith(PREFIX[kind(item)])
    free = by_us(item) or kind(item) == "item_reference"
    return free or not own.startswith(tuple(PREFIX.values()))


def stored(request: dict[str, Any], items: list[Item]) -> set[str]:
    """R7. A reasoning item with neither its encrypted nor its plain content can only be looked
    up by its id, so it is read as "id-only replay"; the narrow reading is references alone."""
    if request.get("store") is not False:
        return set()
    for item in items:
        bare = not item.get("encrypted_content") and not item.get("content")
        if kind(item) == "item_reference" or (
            kind(item) == "reasoning" and bare
        ):
            return {"R7"}
    return set()
