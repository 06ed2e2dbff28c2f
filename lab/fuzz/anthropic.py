"""Histories as Anthropic Messages writes them (`provider-rules` §1.A)."""

from __future__ import annotations

from msgspec.structs import replace

from lab.fuzz.steps import Call, Media, Page, Step, opaque

_MOST_MARKERS = 3


def write(page: Page, steps: list[Step], wanted: frozenset[str]) -> None:
    """Write the steps down."""
    owed: dict | None = None
    markers = 0
    if is_manual(wanted):
        steps = [begun_with_thinking(step) for step in steps]
    for step in steps:
        if step.user is not None and owed is None:
            page.messages.append(_user(page, step, wanted))
        if (
            "note" in step.more
            and owed is None
            and page.messages[-1]["role"] == "user"
        ):
            page.messages.append(
                {"role": "system", "content": "Be brief from now on."}
            )
            page.features.add("note")
        owed = _reply(page, step, owed)
        results = [_result(page, call, id) for id, call in _asked(page, step)]
        if not results:
            continue
        content: list[dict] = results
        if "interrupted" in step.more and owed is None:
            content = [
                *_stopped(results),
                {"type": "text", "text": "Stop. Do the other."},
            ]
            page.features.add("interrupted")
        if "cache marker" in step.more and markers < _MOST_MARKERS:
            content[-1] = {
                **content[-1],
                "cache_control": {"type": "ephemeral"},
            }
            markers += 1
            page.features.add("cache marker")
        page.messages.append({"role": "user", "content": content})


def is_manual(wanted: frozenset[str]) -> bool:
    """Whether thinking is asked for by hand; the model must be one that binds it, and think."""
    thinks = wanted & {"signed reasoning", "sealed reasoning"}
    return bool(thinks) and wanted >= {"bound reasoning", "manual thinking"}


def think_once(messages: list[dict]) -> list[dict]:
    """The history as a model leaves it that thinks once a turn: a tool loop is one turn (A14)."""
    found: list[dict] = []
    asked = False
    for at, message in enumerate(messages):
        if message["role"] != "assistant":
            found.append(message)
            asked = (
                asked if message["role"] == "system" else _is_asked(message)
            )
            continue
        said = message["content"]
        blocks = (
            said
            if isinstance(said, list)
            else [{"type": "text", "text": said}]
        )
        rest = [
            block
            for block in blocks
            if block["type"] not in ("thinking", "redacted_thinking")
        ]
        thought = {
            "type": "thinking",
            "thinking": "Let me see.",
            "signature": f"once{at}",
        }
        head, asked = [thought] if asked else [], False
        found.append(
            {
                **message,
                "content": [
                    *head,
                    *(rest or [{"type": "text", "text": "So."}]),
                ],
            }
        )
    return found


def _is_asked(message: dict) -> bool:
    """Whether the user says something here, and gives no result."""
    content = message["content"]
    kinds = (
        {block["type"] for block in content}
        if isinstance(content, list)
        else set()
    )
    return "tool_result" not in kinds


def begun_with_thinking(step: Step) -> Step:
    """With manual thinking a reply begins with it, and none with the result of a tool (A14).

    In every second one the calls stand in a message of their own, behind what was said; and
    every third ends a turn, since nothing is pruned while one is open.
    """
    server = "" if step.server == "mixed server tool" else step.server
    step = replace(step, thought=step.thought or "signed", server=server)
    if step.number % 2:
        step = replace(
            step,
            said=step.said or "So.",
            more=step.more | {"several messages"},
        )
    if step.number % 3 == 1:
        return replace(step, calls=())
    return (
        replace(step, user=step.user or "And then?")
        if step.number % 3 == 2
        else step
    )


def _user(page: Page, step: Step, wanted: frozenset[str]) -> dict:
    hands_over = not step.number and "document or sound" in wanted
    if step.media is None and not hands_over:
        return {"role": "user", "content": step.user}
    media = step.media
    if media is not None and media.kind == "audio":
        media = None
    blocks = [_media(media)] if media else [_note_of_upload(page)]
    page.features.add("media from the user")
    if media is None or media.kind == "document":
        page.features.add("document or sound")
    return {
        "role": "user",
        "content": [*blocks, {"type": "text", "text": step.user}],
    }


def _note_of_upload(page: Page) -> dict:
    source = {
        "type": "text",
        "media_type": "text/plain",
        "data": "a plain document\n" * 20,
    }
    return {"type": "document", "source": source, "title": page.name("doc")}


def _media(media: Media) -> dict:
    source = {"type": "base64", "media_type": media.mime, "data": media.data}
    return {
        "type": "image" if media.kind == "image" else "document",
        "source": source,
    }


def _reply(page: Page, step: Step, owed: dict | None) -> dict | None:
    """Write the model's messages of a step; returns the server result still owed, if any."""
    page.sent()
    blocks = [] if owed is None else [owed]
    blocks += _said(page, step)
    use = _serve(page, step)
    if use is not None:
        found = _found(page, use["id"])
        blocks.append(use)
        if step.server == "server tool":
            blocks.append(found)
        elif step.server == "paused server tool":
            page.messages.append({"role": "assistant", "content": blocks})
            blocks = [found]
    mixed = use is not None and step.server == "mixed server tool"
    if "several messages" in step.more and blocks and step.calls and not mixed:
        page.messages.append({"role": "assistant", "content": blocks})
        blocks = []
        page.features.add("several messages")
    for id, call in _asked(page, step):
        blocks.append(
            {
                "type": "tool_use",
                "id": id,
                "name": call.tool,
                "input": call.arguments,
            }
        )
    if step.calls and step.said:
        page.features.add("text and call")
    page.messages.append({"role": "assistant", "content": blocks})
    return found if mixed else None


def _said(page: Page, step: Step) -> list[dict]:
    """What the model thinks and says before it calls anything."""
    blocks = _thinking(page, step)
    if "compaction" in step.more:
        sealed = {"encrypted_content": opaque(page, "cmp")}
        blocks.append(
            {
                "type": "compaction",
                "content": "What was done before.",
                **sealed,
            }
        )
        page.features.add("compaction")
    if step.said or not step.calls:
        blocks.append({"type": "text", "text": step.said or "done"})
    if "unknown part" in step.more:
        blocks.append(
            {"type": "advisor_note", "fingerprint": opaque(page, "adv")}
        )
        page.features.add("unknown part")
    return blocks


def _asked(page: Page, step: Step) -> list[tuple[str, Call]]:
    if len(step.calls) > 1:
        page.features.add("parallel calls")
    return [
        (f"toolu_{step.number}_{n}", call) for n, call in enumerate(step.calls)
    ]


def _thinking(page: Page, step: Step) -> list[dict]:
    if step.thought == "signed":
        page.features.add("signed reasoning")
        return [
            {
                "type": "thinking",
                "thinking": "hm " * 30,
                "signature": opaque(page, "sig"),
            }
        ]
    if step.thought == "sealed":
        page.features.add("sealed reasoning")
        return [{"type": "redacted_thinking", "data": opaque(page, "red")}]
    return []


def _serve(page: Page, step: Step) -> dict | None:
    """A server tool's call; a mixed one needs client calls beside it."""
    if not step.server or (
        step.server == "mixed server tool" and not step.calls
    ):
        return None
    page.features.add(step.server)
    id = page.name("srvtoolu_")
    return {
        "type": "server_tool_use",
        "id": id,
        "name": "web_search",
        "input": {"query": "x"},
    }


def _found(page: Page, id: str) -> dict:
    found = {
        "type": "web_search_result",
        "url": "https://example.org",
        "title": "t",
        "encrypted_content": opaque(page, "web"),
    }
    return {
        "type": "web_search_tool_result",
        "tool_use_id": id,
        "content": [found],
    }


def _result(page: Page, call: Call, id: str) -> dict:
    block: dict = {"type": "tool_result", "tool_use_id": id}
    if call.failed:
        block["is_error"] = True
        page.features.add("error")
    if not call.output:
        page.features.add("empty output")
        return block if call.items else {**block, "content": ""}
    if call.media is not None:
        page.features.add("media in a result")
        if call.media.kind == "document":
            page.features.add("document or sound")
        text = {"type": "text", "text": call.output}
        return {**block, "content": [text, _media(call.media)]}
    if call.items:
        text = {"type": "text", "text": call.output}
        inside = (_texts, _found_in, _document_of)[len(call.output) % 3]
        return {**block, "content": inside(page, [text] * call.items)}
    return {**block, "content": call.output}


def _texts(page: Page, texts: list[dict]) -> list[dict]:
    return texts


def _found_in(page: Page, texts: list[dict]) -> list[dict]:
    """A search result that holds these texts."""
    page.features.add("document or sound")
    return [
        {
            "type": "search_result",
            "source": page.name("s"),
            "title": "t",
            "content": texts,
        }
    ]


def _document_of(page: Page, texts: list[dict]) -> list[dict]:
    """A document of these texts, and one of a single text."""
    page.features.add("document or sound")
    blocks = {"type": "content", "content": texts}
    plain = {
        "type": "text",
        "media_type": "text/plain",
        "data": texts[0]["text"],
    }
    return [
        {"type": "document", "source": source} for source in (blocks, plain)
    ]


def _stopped(results: list[dict]) -> list[dict]:
    """The last result says that its call was interrupted."""
    last = {
        key: value for key, value in results[-1].items() if key != "content"
    }
    return [
        *results[:-1],
        {**last, "content": "interrupted by the user", "is_error": True},
    ]
