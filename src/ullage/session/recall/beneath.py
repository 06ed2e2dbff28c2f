"""What is beneath an index of messages that a store keeps: every output that it names.

An index is known by its first line and its entries, which `ullage.core.history.index.index_of`
writes. A text that only looks like one opens nothing that its reader could not open by the same
ref, for a store gives each tenant its own outputs.
"""

from __future__ import annotations

import re

from ullage.core.errors import RefNotFound
from ullage.core.values.effects import Get, Look, Output, Shape, Steps
from ullage.session.recall.corpus import (
    MOST_CHARS,
    Corpus,
    ExtendedCorpus,
    OutputCorpus,
)
from ullage.session.recall.source import OutputReader

INDEX = "Index of messages "
_ENTRY = re.compile(
    r"(?m)^output ref=([0-9a-z]{16}) \(([\d,]+) characters\)(?: of (.*))?$"
)


def with_earlier(corpus: Corpus) -> Steps[Corpus]:
    """A history's corpus, extended by the outputs beneath the indexes that its beginning names.

    Args:
        corpus: of the history.
    """
    outputs = dict[str, tuple[Output, str]]()
    for ref in corpus.begins_with:
        try:
            earlier = yield from corpus_beneath((yield Look(ref)))
        except RefNotFound:
            continue  # a clean-up took it: the search goes on without
        if earlier is not None:
            for output, about in earlier.outputs:
                outputs[output.ref] = (output, about)
    if not outputs:
        return corpus
    return ExtendedCorpus(OutputCorpus([*outputs.values()]), corpus)


def corpus_beneath(output: Output | Shape) -> Steps[OutputCorpus | None]:
    """An index and the outputs that it names, in their order; None for a text that is no index.

    Args:
        output: an output, or its shape in the store.

    Outputs that are not kept any more are passed over, and so are the oldest beyond `MOST_CHARS`.
    """
    source = OutputReader(output)
    if (yield from source.span(0, len(INDEX))) != INDEX:
        return None
    text = yield from source.span(0, source.chars)
    index = Output(output.ref, text), "the index"
    room = MOST_CHARS - len(text)
    entries = {entry[1]: entry for entry in _ENTRY.finditer(text)}
    beneath = list[tuple[Output, str]]()
    for ref, entry in reversed(entries.items()):
        room -= int(entry[2].replace(",", ""))
        if room < 0:
            break
        try:
            named: Output = yield Get(ref)
        except RefNotFound:
            continue
        beneath.append((named, entry[3] or ""))
    return OutputCorpus([index, *reversed(beneath)])
