"""One result cut and kept, and read on: for a host that sees results go by and has no history.

    store = ullage.MemoryStore()
    shown = ullage.cut_result(result, store, tool="grep")    # what the model is to see
    answer = ullage.open_result("get_continuation", {"tool_call_id": ref}, store)

`ullage mcp` stands on these.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from ullage.core.contract.kinds import LIMIT_CHARS, head_share_of, kind_of
from ullage.core.history.canon import ref_of
from ullage.core.values.authors import KNOWN_USER_TOOLS, plain_tool_name
from ullage.core.values.effects import Output
from ullage.core.values.notices import Words
from ullage.core.values.toolset import SHORT
from ullage.policy.stages.shorten import shorten
from ullage.session.drivers import run
from ullage.session.recall.corpus import MOST_CHARS, OutputCorpus
from ullage.session.recall.dispatch import Answer, answer
from ullage.session.recall.tools import call_of
from ullage.stores import every_ref

if TYPE_CHECKING:
    from ullage.stores import Blobs, Store

_WORDS = Words(toolset=SHORT)


def cut_text(
    text: str,
    *,
    tool: str = "",
    limit_chars: int | None = None,
    words: Words = _WORDS,
) -> tuple[str, Output] | None:
    """Cut a result; None if it may stay whole.

    Args:
        text: the result.
        tool: the name of the tool that gave it. Of one that asks the user all is shown.
        limit_chars: the most characters shown. None: by the kind of tool, judged by its name.
        words: the wording of the notice. It names the tool of `recall_tools` if none is given.

    Returns:
        The text to show, and the original, which is to be stored first.
    """
    if limit_chars is None and plain_tool_name(tool) in KNOWN_USER_TOOLS:
        return None
    kind = kind_of(tool)
    limit_chars = LIMIT_CHARS[kind] if limit_chars is None else limit_chars
    if len(text) <= limit_chars:
        return None
    ref = ref_of(text)
    head_share = head_share_of(kind)
    short_text = shorten(
        text, limit_chars, ref, words, head_share=head_share, tables=True
    )
    return None if short_text is None else (short_text, Output(ref, text))


def cut_result(
    text: str,
    store: Blobs,
    *,
    tool: str = "",
    limit_chars: int | None = None,
    tenant: str = "",
    words: Words = _WORDS,
) -> str:
    """Cut a result for a model: the result itself, or a part of it whose notice opens the rest.

    The original is stored before this returns.

    Args:
        text: the result.
        store: where the original is kept.
        tool: see `cut_text`.
        limit_chars: see `cut_text`.
        tenant: the owner.
        words: see `cut_text`.

    Raises:
        StoreError: the original could not be kept.
    """
    cut = cut_text(text, tool=tool, limit_chars=limit_chars, words=words)
    if cut is None:
        return text
    short_text, output = cut
    store.put(tenant, (output,))
    return short_text


def open_result(
    name: str,
    arguments: Mapping[str, Any] | str,
    store: Blobs,
    *,
    tenant: str = "",
    words: Words = _WORDS,
    is_one_conversation: bool = False,
) -> Answer:
    """The answer to a call of one of the recall tools. What is wrong with the call is told in it.

    Args:
        name: the tool's, with the prefix of ``words``.
        arguments: as an object, or as its JSON text.
        store: where the originals are kept.
        tenant: whose.
        words: the wording that the notices were written with.
        is_one_conversation: whether all that is kept for the tenant is of one conversation. Then a
            search without a ref looks through it; else the call is told to name a ref.

    Raises:
        StoreError: the store failed.
    """
    full_store = cast("Store", store)  # they only read outputs

    def corpus_of(ref: str | None) -> OutputCorpus | None:
        if is_one_conversation and ref is None:
            return _everything(full_store, tenant)
        return None

    call = call_of(name, arguments)
    steps = answer(call, words, lambda name, thoroughly: None, corpus_of)
    return run(steps, full_store, tenant)


def _everything(store: Store, tenant: str) -> OutputCorpus:
    """All texts that are kept for a tenant, as far as a search looks through them."""
    outputs = list[tuple[Output, str]]()
    room = MOST_CHARS
    for ref in every_ref(store, tenant):
        output = store.get(tenant, ref)
        room -= len(output.text)
        if outputs and room < 0:
            break
        if output.kind == "text":
            outputs.append((output, ""))
    return OutputCorpus(outputs)
