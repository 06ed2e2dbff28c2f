"""The counters of the three-layer document, counted from the events of sessions.

    metrics = TokenManagementMetrics.of(session.events, session.store)

The events of all sessions of one conversation may be chained, one for each request say: a cut that
several of them made anew is one cut. Conversations are counted apart, and added; then give the
store they share once. The document's own names are those of
`TokenManagementMetrics.under_its_own_names`.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
from msgspec import Struct

from ullage.stores import files_of
from ullage.values.events import Event

__all__ = ["TokenManagementMetrics"]


class TokenManagementMetrics(Struct, frozen=True, kw_only=True, rename="pascal"):
    """Eight sums (three-layer document, "Monitoring and Metrics"). They can be added.

    Attributes:
        total_truncations: outputs cut when first seen.
        total_prunings: old outputs cut to their first characters.
        total_compactions: how often a conversation was compacted.
        bytes_truncated: bytes of UTF-8 that the truncations left out.
        tokens_pruned: tokens that the prunings won, as the window counts, markers included.
        tokens_compacted: tokens that the compactions won, counted alike.
        spill_files_created: files written beside the store.
        spill_bytes_written: bytes written to them.
    """

    total_truncations: int = 0
    total_prunings: int = 0
    total_compactions: int = 0
    bytes_truncated: int = 0
    tokens_pruned: int = 0
    tokens_compacted: int = 0
    spill_files_created: int = 0
    spill_bytes_written: int = 0

    @classmethod
    def of(cls, events: Iterable[Event], store: object = None) -> TokenManagementMetrics:
        """What these events add up to, and the files that a store has written.

        Args:
            events: those of one session, or of several of the same conversation.
            store: a store with spill files, however it is wrapped; of any other none count.
        """
        every = tuple(dict.fromkeys(events))
        truncated = [event for event in every if event.kind == "truncated"]
        pruned = [event for event in every if event.kind == "pruned"]
        compacted = [event for event in every if event.kind == "compacted"]
        files = files_of(store)
        return cls(
            total_truncations=len(truncated),
            total_prunings=len(pruned),
            total_compactions=len(compacted),
            bytes_truncated=sum(event.left_out_bytes for event in truncated),
            tokens_pruned=sum(event.tokens_before - event.tokens_after for event in pruned),
            tokens_compacted=sum(event.tokens_before - event.tokens_after for event in compacted),
            spill_files_created=files.files_created if files else 0,
            spill_bytes_written=files.bytes_written if files else 0,
        )

    def __add__(self, other: TokenManagementMetrics) -> TokenManagementMetrics:
        names = self.__struct_fields__
        return TokenManagementMetrics(
            **{name: getattr(self, name) + getattr(other, name) for name in names}
        )

    def under_its_own_names(self) -> dict[str, int]:
        """The counters under the document's names, ``TotalTruncations`` and so on."""
        counters: dict[str, int] = msgspec.to_builtins(self)
        return counters
