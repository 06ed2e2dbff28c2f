"""Answer a recall call. Whatever is wrong with the call is reported to the model, never raised."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

import msgspec

from ullage.core.values.effects import Get, Output, Shape, Steps
from ullage.core.values.messages import ToolCall
from ullage.core.values.notices import Words
from ullage.core.values.toolset import CONTINUATION, GREP
from ullage.session.recall.beneath import corpus_beneath, with_earlier
from ullage.session.recall.corpus import Corpus, CorpusOf, OutputCorpus
from ullage.session.recall.found import FromHistory, find
from ullage.session.recall.grep import GrepResult, search
from ullage.session.recall.json_lines import MOST_CHARS, json_lines
from ullage.session.recall.lines import SearchQuery, search_lines
from ullage.session.recall.pattern import PatternError
from ullage.session.recall.read import characters, lines, numbered
from ullage.session.recall.source import OutputReader

D = TypeVar("D", int, None)

_OTHER_NAMES = ("ref", "ref_id")
"""What a model may call the ref, where heads of pages and the documents' tools do so."""
_loads = msgspec.json.Decoder().decode


class Answer(msgspec.Struct, frozen=True):
    """The answer to a recall call.

    Attributes:
        text: what the model reads.
        ref: the ref that was opened, or None if none was.
        is_error: whether the call could not be answered.
        block: a content block to return as what it was, or None.
    """

    text: str
    ref: str | None = None
    is_error: bool = False
    block: Any = None


def answer(
    call: ToolCall,
    words: Words,
    from_history: FromHistory,
    corpus_of: CorpusOf = lambda ref: None,
) -> Steps[Answer]:
    """Answer one recall call.

    Args:
        call: the call.
        words: the wording of its conversation.
        from_history: finds an output in the history at hand.
        corpus_of: what a search looks through in that history.
    """
    name = call.name.removeprefix(words.prefix)
    arguments = _arguments(call.arguments)
    if name not in words.toolset.names or arguments is None:
        return _error(
            "the arguments are not a JSON object", "Send the call again."
        )
    finds = name == CONTINUATION and words.toolset.searches
    query = _query_in(arguments) if finds or name == GREP else SearchQuery()
    named_by = "tool_call_id" if name == CONTINUATION else "ref_id"
    reference = _reference_in(
        arguments, (named_by, *_OTHER_NAMES) if finds else (named_by,)
    )
    if reference:
        output = yield from find(reference, from_history)
        if output is None:
            return _unknown(reference, words)
        corpus = yield from _corpus_for(output, query, corpus_of)
        if corpus is not None:
            return (
                yield from _search_corpus(corpus, query, words, output.ref)
            )
        return (
            yield from _open_output(name, arguments, output, words, reference)
        )
    if not (finds and query):
        remedy = ", or words to look for" if finds else ""
        return _error(
            f"{named_by} is missing",
            f"Give the ref that the notice names{remedy}.",
        )
    corpus = corpus_of(None)
    if corpus is None:
        return _error(
            f"without {named_by} there is nothing to search here",
            "Give the ref of a notice.",
        )
    return (
        yield from _search_corpus(
            (yield from with_earlier(corpus)), query, words
        )
    )


def _reference_in(arguments: dict[str, Any], names: Sequence[str]) -> str:
    """The ref that a call gives under one of these names; ``""`` if under none."""
    values = (arguments.get(name) for name in names)
    return next(
        (value for value in values if isinstance(value, str) and value), ""
    )


def _unknown(reference: str, words: Words) -> Answer:
    if words.toolset.unknown is not None:
        quoted = json.dumps(reference[:80])[1:-1]
        return Answer(
            words.toolset.unknown.format(asked=quoted), is_error=True
        )
    return _error(
        f"nothing is kept under {reference[:80]!r}",
        "Copy the ref from the notice exactly; it has 16 characters.",
    )


def _query_in(arguments: dict[str, Any]) -> SearchQuery:
    """The search that a call's arguments ask for."""
    words = arguments.get("words")
    pattern = arguments.get("pattern")
    if isinstance(words, list):  # as some models write several
        words = " ".join(word for word in words if isinstance(word, str))
    return SearchQuery(
        words=words if isinstance(words, str) else "",
        pattern=pattern if isinstance(pattern, str) else "",
        ignore_case=bool(arguments.get("ignore_case")),
        skipped=max(_integer(arguments.get("offset"), 0), 0),
        page=max(_integer(arguments.get("page"), 1), 1),
    )


def _corpus_for(
    output: Output | Shape, query: SearchQuery, corpus_of: CorpusOf
) -> Steps[Corpus | None]:
    """The texts that a search of an output looks through; None: it is one text, read by itself."""
    if not query:
        return None
    corpus = corpus_of(output.ref) or (yield from corpus_beneath(output))
    if corpus is None and query.words:
        source = OutputReader(output)
        text = yield from source.span(0, source.chars)
        return OutputCorpus([(Output(output.ref, text), "")])
    return corpus


def _search_corpus(
    corpus: Corpus, query: SearchQuery, words: Words, ref: str | None = None
) -> Steps[Answer]:
    """A page of the lines of several texts that answer a search."""
    try:
        page = yield from search_lines(corpus, query, words.toolset.page_chars)
    except PatternError as error:
        return _error(str(error), "Change the pattern.")
    return Answer(page, ref)


def _open_output(
    name: str,
    arguments: dict[str, Any],
    output: Output | Shape,
    words: Words,
    reference: str,
) -> Steps[Answer]:
    """The answer from one output: its block, its matching lines, or a page."""
    searches = name == GREP or (
        words.toolset.searches and bool(arguments.get("pattern"))
    )
    if output.kind == "block" and not searches and not arguments.get("offset"):
        whole = (
            output if isinstance(output, Output) else (yield Get(output.ref))
        )
        block = _loads(whole.text)
        kind = (
            block.get("type", "block") if isinstance(block, dict) else "block"
        )
        return Answer(
            f"[{kind} {whole.ref}, complete]", whole.ref, block=block
        )
    source = OutputReader(output)
    if searches:
        return (
            yield from _search(
                arguments, source, words, 2 if name == CONTINUATION else 0
            )
        )
    return (yield from _page(name, arguments, source, words, reference))


def _page(
    name: str,
    arguments: dict[str, Any],
    source: OutputReader,
    words: Words,
    reference: str,
) -> Steps[Answer]:
    toolset = words.toolset
    if name == CONTINUATION:
        offset = _integer(arguments.get("offset"), None)
        page = yield from characters(
            source, offset, words, toolset.page_chars, reference
        )
        return Answer(page, source.ref)
    offset = _integer(arguments.get("offset"), 0)
    limit = _integer(arguments.get("limit"), toolset.page_lines)
    page = yield from lines(source, offset, limit, words, toolset.page_chars)
    return Answer(page, source.ref)


def _search(
    arguments: dict[str, Any], source: OutputReader, words: Words, context: int
) -> Steps[Answer]:
    pattern = arguments.get("pattern")
    context = _integer(arguments.get("context_lines"), context)
    if not isinstance(pattern, str) or not pattern:
        return _error(
            "pattern is missing", "Give a regular expression in RE2 syntax."
        )
    find_lines = partial(
        search,
        pattern=pattern,
        ignore_case=bool(arguments.get("ignore_case")),
        context_lines=min(max(context, 0), 5),
        max_matches=words.toolset.matches,
    )
    try:
        result = yield from find_lines(source)
        if any(
            line.clipped and line.match is not None for line in result.lines
        ):
            values = yield from _search_values(source, find_lines)
            if values is not None:
                return values
    except PatternError as error:
        return _error(str(error), "Change the pattern.")
    rows = [
        numbered(line.number, line.text, "-" if line.match is None else ":")
        + (
            f" [… a part of the line, from character {line.start:,}]"
            if line.clipped
            else ""
        )
        for line in result.lines
    ]
    more = "" if result.total_is_exact else "more than "
    counts = f"{result.match_count:,} of {more}{result.total:,} matching lines"
    footer = f"[{counts}; {source.chars:,} characters searched]"
    return Answer("\n".join([*rows, footer]), source.ref)


def _search_values(
    source: OutputReader,
    find_lines: Callable[[OutputReader], Steps[GrepResult]],
) -> Steps[Answer | None]:
    """The values of a JSON document that a search finds, with their paths.

    None where that is no help: it is no JSON, or only how it is written is like the pattern.
    """
    if source.chars > MOST_CHARS:
        return None
    text = yield from source.span(0, source.chars)
    lines = json_lines(text)
    result = (
        None
        if lines is None
        else (yield from find_lines(OutputReader(Output(source.ref, lines))))
    )
    if result is None or not result.total:
        return None
    rows = [
        f"{'-' if line.match is None else ':'} {line.text}"
        for line in result.lines
    ]
    more = "" if result.total_is_exact else "more than "
    counts = (
        f"{result.match_count:,} of {more}{result.total:,} matching values"
    )
    counts += ", each with its path"
    footer = f"[{counts}; {source.chars:,} characters of JSON searched]"
    return Answer("\n".join([*rows, footer]), source.ref)


def _arguments(text: str) -> dict[str, Any] | None:
    try:
        value = _loads(text or "{}")
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _integer(value: Any, default: D) -> int | D:
    """A number as models write it: 4000, 4000.0, "4000", "4,000" or "4000.0"."""
    if isinstance(value, str):
        value = value.replace(",", "").removesuffix(".0")
    try:
        return int(value)
    except (TypeError, ValueError, OverflowError):
        return default


def _error(problem: str, remedy: str) -> Answer:
    return Answer(
        json.dumps({"error": problem, "remedy": remedy}), is_error=True
    )
