"""Names of tools: ours give way where the caller has a tool of such a name, at any turn.

A request is asked again whenever it is fitted: the caller may take a name of ours in the middle of
a conversation. From there on ours have a prefix, which is written to the ledger at that place and
stays, also where the caller's tool goes again. What tools the caller has is told by the request,
and by the history where a search loaded them.

The notices shown name ours as they are called now. Those that were made before and recorded are
worded again in a batch of that place; what only the caller's history holds (pages that were read)
names the old tool, and the description of ours says so.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from ullage.core.contract.format import Format
from ullage.core.contract.ranges import set_aside
from ullage.core.history.ledger import PolicyRecord
from ullage.core.history.transcript import Transcript
from ullage.core.history.window import Window
from ullage.core.values.edits import ProposedEdit
from ullage.core.values.events import Event
from ullage.core.values.notices import Words
from ullage.core.values.toolset import Toolset

if TYPE_CHECKING:
    from ullage.core.turn.request import Request


@lru_cache(maxsize=32)
def definitions(
    wire: Format,
    prefix: str,
    toolset: Toolset,
    *,
    is_renamed: bool = False,
    is_former: bool = False,
) -> tuple[dict[str, Any], ...]:
    """The tools of a toolset in the wire form of a format; constant as long as their names are.

    Args:
        wire: the format.
        prefix: what stands before their names.
        toolset: the toolset.
        is_renamed: whether notices of the conversation name them without that prefix.
        is_former: whether they are wanted as earlier versions defined them.
    """
    tools = []
    for spec in toolset.former if is_former else toolset.tools:
        if is_renamed:
            tools.append(wire.tool(spec.renamed(prefix)))
        else:
            named = replace(spec, name=prefix + spec.name)
            tools.append(wire.tool(named))
    return tuple(tools)


def holds(request: Request, prefix: str, toolset: Toolset) -> bool:
    """Whether the caller's own tools hold our definitions already, cached or not."""
    names = {prefix + spec.name for spec in toolset.tools}
    has_all = names.issubset(request.envelope.head.tools)
    return has_all and names == set(_copies(request, prefix, toolset))


def prefix_beside(
    request: Request,
    transcript: Transcript,
    toolset: Toolset,
    prefix: str = "",
) -> str:
    """What has to stand before our names, so that the caller has no tool of any of them.

    Args:
        request: the request.
        transcript: its history, which may hold tools that a search loaded.
        toolset: ours.
        prefix: the one at hand, which stays if it will do.
    """
    names = {*request.envelope.head.tools, *transcript.loaded}
    number = 1
    while not _is_free(prefix, names, request, toolset):
        prefix = _prefix(number)
        number += 1
    return prefix


def _prefix(number: int) -> str:
    """The first, second, … thing that may stand before our names."""
    return "ullage_" if number == 1 else f"ullage{number}_"


def prefix_of_host(
    request: Request, toolset: Toolset, prefix: str = ""
) -> str:
    """What stands before our names in a request to which the host itself adds our tools.

    A host may write our definitions in a form of its own, so that a tool of one of our names is
    taken for ours. Where the caller has such a tool, the host adds ours under a prefix, exactly
    as they are defined, for as long as the caller has it.

    Args:
        request: the request.
        toolset: ours.
        prefix: the one at hand, which stays unless the request holds ours under another.
    """
    if prefix and holds(request, prefix, toolset):
        return prefix
    for number in range(1, 10):
        other = _prefix(number)
        if holds(request, other, toolset):
            return other
    listed = request.envelope.head.tools
    are_listed = any(prefix + name in listed for name in toolset.names)
    return prefix if are_listed or not toolset.names <= set(listed) else ""


def _is_free(
    prefix: str, names: Collection[str], request: Request, toolset: Toolset
) -> bool:
    """Whether no tool of the caller's has a name of ours with this prefix."""
    our_names = {prefix + name for name in toolset.names}
    clashing = our_names.intersection(names)
    if not clashing:
        return True
    return clashing <= set(_copies(request, prefix, toolset))


def _copies(request: Request, prefix: str, toolset: Toolset) -> Iterator[str]:
    """The names under which the caller's tools hold copies of our definitions.

    A caller who sends the tools of an earlier view, or of an earlier version, may have put cache
    markers on them.
    """
    wire = request.wire
    texts = {
        wire.tool_text(tool, "tools")
        for is_former in (False, True)
        for is_renamed in (False, True)
        for tool in definitions(
            wire, prefix, toolset, is_renamed=is_renamed, is_former=is_former
        )
    }
    names = {prefix + spec.name for spec in toolset.tools}
    for tool in request.envelope.tools:
        name = wire.tool_name(tool)
        if name in names and wire.tool_text(tool, "tools") in texts:
            yield name


def to_allow(request: Request, words: Words) -> tuple[str, ...]:
    """Our names, where the request lists what may be called, and its list can be longer."""
    choice = request.envelope.choice
    names = tuple(words.prefix + spec.name for spec in words.toolset.tools)
    if choice.allows(names) or not choice.takes_more:
        return ()
    return names


def renaming(
    opened: PolicyRecord, key: bytes, prefix: str
) -> tuple[PolicyRecord, Event]:
    """What is in force once our tools have another prefix, from this place on, and the event."""
    renamed = replace(
        opened,
        prefix=prefix,
        former=(*opened.former, (key, opened.prefix)),
        joined=False,
        changed=False,
        adds_tools=True,
    )
    reason = (
        "a tool of the caller's has a name of ours, "
        f"so ours begin with {prefix!r} from here on"
    )
    if not prefix:
        reason = "no tool of the caller's has a name of ours any more"
    return renamed, Event(kind="renamed", where="tools", why=reason)


def words_of(
    opened: PolicyRecord, transcript: Transcript, toolset: Toolset
) -> Words:
    """The wording of what is in force, in a history."""
    former: list[tuple[int, str]] = []
    for key, prefix in opened.former:
        place = transcript.find(key) or 0
        former.append((place, prefix))
    return Words(
        opened.recall,
        opened.prefix,
        toolset,
        opened.folder,
        tuple(former),
    )


def worded_anew(window: Window) -> list[ProposedEdit]:
    """Cuts by which notices that name a tool as it was called before name it as it is now."""
    words = window.words
    transcript = window.transcript
    cuts: list[ProposedEdit] = []
    for index in window.visible:
        for (number, item), edit in window.shown(index).items():
            text = words.renamed(edit.text)
            output = transcript.output((index, number, item))
            if text != edit.text and output is not None:
                renamed = replace(edit, text=text, why=_RENAMED)
                cuts.append(ProposedEdit(renamed, (output,)))
    for start, stop, summary in window.summaries:
        text = words.renamed(summary.text)
        if text != summary.text:
            outputs = set_aside(window, start, stop)
            cuts.append(
                ProposedEdit(
                    replace(summary, text=text, why=_RENAMED), outputs
                )
            )
    return cuts


_RENAMED = "the recall tool that it names has another name now"
