"""Amazon Bedrock Converse, read from the rules B1 to B12.

The text behind them: the API reference of `Converse` and its types, the user guide on prompt
caching, and the errors that the service is seen to answer with. Not here: B0, the shape of types.
"""

import re
from itertools import pairwise
from typing import Any

Block = dict[str, Any]
Message = dict[str, Any]

POINT = "cachePoint"
NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
WIDER_ID = re.compile(r"[a-zA-Z0-9_.:-]{1,64}")
DOCUMENT = re.compile(r"[a-zA-Z0-9\s()\[\]-]{1,200}")
CLAUDE = re.compile(
    r"claude-(?:[a-z]+-)?(\d{1,2})(?!\d)(?:[-.](\d{1,2})(?!\d))?"
)
UNTOLD = (
    "profile/",
    "provisioned-model/",
    "custom-model",
    "imported-model/",
    "router/",
    "endpoint/",
)
A_CALL = ("modelId", "system", "inferenceConfig")
"""What shows that the request is a whole one, of which it can be said that a field is missing."""


def broken(request: dict[str, Any]) -> set[str]:
    """The ids of the rules this request breaks."""
    messages: list[Message] = request.get("messages") or []
    spoken = [message for message in messages if message["role"] != "system"]
    return (
        roles(spoken)
        | pairs(messages)
        | texts(request, messages)
        | names(request, messages)
        | tools(request, messages)
        | last(request, spoken)
        | points(request, messages)
        | open_loop(request, spoken)
        | documents(messages)
    )


def of(message: Message, kind: str) -> list[Any]:
    return [
        block[kind]
        for block in message["content"]
        if block.get(kind) is not None
    ]


def asked_in(message: Message) -> list[Block]:
    """The calls that the caller answers; any other names its type."""
    return [call for call in of(message, "toolUse") if not call.get("type")]


def given_in(message: Message) -> list[Block]:
    return [
        result
        for result in of(message, "toolResult")
        if not result.get("type")
    ]


def roles(spoken: list[Message]) -> set[str]:
    """B1, B2. Messages of the system's are of neither side, and are passed over."""
    found = (
        {"B2"}
        if any(a["role"] == b["role"] for a, b in pairwise(spoken))
        else set()
    )
    begins = bool(spoken) and spoken[0]["role"] == "user"
    return found | (set() if begins else {"B1"})


def pairs(messages: list[Message]) -> set[str]:
    """B3 to B5.

    "The next message" and "the message before" are taken by their letter, whoever speaks in it.
    """
    found = set()
    used: set[str] = set()
    answered: set[str] = set()
    for at, message in enumerate(messages):
        before = messages[at - 1] if at else None
        asked = (
            {call["toolUseId"] for call in asked_in(before)}
            if before
            else set()
        )
        for result in given_in(message) if message["role"] == "user" else []:
            found |= set() if result["toolUseId"] in asked else {"B4"}
            found |= {"B5"} if result["toolUseId"] in answered else set()
            answered.add(result["toolUseId"])
        behind = messages[at + 1] if at + 1 < len(messages) else None
        given = (
            {result["toolUseId"] for result in given_in(behind)}
            if behind
            else set()
        )
        given = given if behind and behind["role"] == "user" else set()
        for call in (
            asked_in(message) if message["role"] == "assistant" else []
        ):
            found |= set() if call["toolUseId"] in given else {"B3"}
            found |= {"B5"} if call["toolUseId"] in used else set()
            used.add(call["toolUseId"])
    return found


def texts(request: dict[str, Any], messages: list[Message]) -> set[str]:
    """B6, in messages, in results and what was found, and in system text."""
    said = [text for message in messages for text in of(message, "text")]
    said += [
        block["text"]
        for block in request.get("system") or []
        if "text" in block
    ]
    for message in messages:
        results = of(message, "toolResult")
        said += [
            item["text"]
            for result in results
            for item in result["content"]
            if "text" in item
        ]
        every = [item for result in results for item in result["content"]]
        hits = of(message, "searchResult") + of(
            {"content": every}, "searchResult"
        )
        said += [item["text"] for hit in hits for item in hit["content"]]
    failed = [
        r for m in messages for r in given_in(m) if r.get("status") == "error"
    ]
    is_empty = any(not message["content"] for message in messages)
    is_empty = is_empty or any(not result["content"] for result in failed)
    return (
        {"B6"} if is_empty or any(not text.strip() for text in said) else set()
    )


def names(request: dict[str, Any], messages: list[Message]) -> set[str]:
    """B7. What a Claude takes is narrower than what the service takes."""
    model = request.get("modelId") or ""
    is_claude = (
        not model
        or bool(CLAUDE.search(model))
        or any(name in model for name in UNTOLD)
    )
    legal = NAME if is_claude else WIDER_ID
    calls = [call for message in messages for call in asked_in(message)]
    results = [result for message in messages for result in given_in(message)]
    config = request.get("toolConfig") or {}
    specs = [
        tool["toolSpec"]
        for tool in config.get("tools") or []
        if "toolSpec" in tool
    ]
    ids = [thing["toolUseId"] for thing in (*calls, *results)]
    named = [thing["name"] for thing in (*calls, *specs) if "name" in thing]
    well = all(map(legal.fullmatch, ids)) and all(map(NAME.fullmatch, named))
    return set() if well else {"B7"}


def tools(request: dict[str, Any], messages: list[Message]) -> set[str]:
    """B8. Of a history alone nobody can say that its tools are missing."""
    is_whole = any(name in request for name in A_CALL)
    holds = any(of(m, "toolUse") or of(m, "toolResult") for m in messages)
    return (
        {"B8"}
        if is_whole and holds and request.get("toolConfig") is None
        else set()
    )


def last(request: dict[str, Any], spoken: list[Message]) -> set[str]:
    """B9."""
    version = CLAUDE.search(request.get("modelId") or "")
    is_new = version and (int(version[1]), int(version[2] or 0)) >= (4, 6)
    return (
        {"B9"}
        if is_new and spoken and spoken[-1]["role"] == "assistant"
        else set()
    )


def points(request: dict[str, Any], messages: list[Message]) -> set[str]:
    """B10. The prefix is made of the tools, the system text and the messages, in this order."""
    tools = (request.get("toolConfig") or {}).get("tools") or []
    lists = [
        tools,
        request.get("system") or [],
        *(message["content"] for message in messages),
    ]
    in_front = any(entries and POINT in entries[0] for entries in lists)
    found = [
        entry[POINT]
        for entries in lists
        for entry in entries
        if POINT in entry
    ]
    times = [point.get("ttl") or "5m" for point in found]
    is_out_of_order = "5m" in times and "1h" in times[times.index("5m") :]
    return {"B10"} if in_front or is_out_of_order or len(found) > 4 else set()


def open_loop(request: dict[str, Any], spoken: list[Message]) -> set[str]:
    """B11: the loop is one turn, back to the last message that held more than results."""
    more = request.get("additionalModelRequestFields") or {}
    settings = [
        more.get(name) or {} for name in ("thinking", "reasoning_config")
    ]
    if not any(setting.get("type") == "enabled" for setting in settings):
        return set()
    if (
        not spoken
        or spoken[-1]["role"] != "user"
        or not of(spoken[-1], "toolResult")
    ):
        return set()
    at = len(spoken) - 1
    while at and (
        spoken[at]["role"] == "assistant"
        or is_of_results(spoken[at], at, spoken)
    ):
        at -= 1
    begun = next(
        (message for message in spoken[at:] if message["role"] == "assistant"),
        None,
    )
    if begun is None:
        return set()
    begins = (
        bool(begun["content"]) and "reasoningContent" in begun["content"][0]
    )
    return set() if begins else {"B11"}


def is_of_results(message: Message, at: int, spoken: list[Message]) -> bool:
    """Whether a message holds results alone; beside the newest ones words leave the loop open."""
    kinds = {
        kind for block in message["content"] for kind in block if kind != POINT
    }
    return kinds == {"toolResult"} or at == len(spoken) - 1


def documents(messages: list[Message]) -> set[str]:
    """B12. Of those in results nothing is said."""
    found = set()
    for message in messages:
        named = of(message, "document")
        well = all(
            DOCUMENT.fullmatch(one["name"]) and not two(one["name"])
            for one in named
        )
        found |= (
            {"B12"} if named and not (well and of(message, "text")) else set()
        )
    return found


def two(name: str) -> bool:
    """Whether a name has two spaces in a row."""
    return re.search(r"\s\s", name) is not None
