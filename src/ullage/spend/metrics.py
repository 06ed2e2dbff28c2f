"""The counters of the three-layer document, counted from the events of sessions.

    metrics = TokenManagementMetrics.of(session.events, session.store)

A session that begins anew at each request makes cuts again that an earlier one made. Say which
conversation it is, and metrics that are added count each of them once:

    metrics += TokenManagementMetrics.of(session.events, conversation=conversation_id)

Give a store that several share once. The document's own names are those of
`TokenManagementMetrics.under_its_own_names`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import Struct, field
from msgspec.structs import asdict

from ullage.stores import files_of
from ullage.values.events import Event

__all__ = ["TokenManagementMetrics"]


class TokenManagementMetrics(Struct, frozen=True, kw_only=True):
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
        counted: what was counted, by conversation, where that was said.
    """

    total_truncations: int = 0
    total_prunings: int = 0
    total_compactions: int = 0
    bytes_truncated: int = 0
    tokens_pruned: int = 0
    tokens_compacted: int = 0
    spill_files_created: int = 0
    spill_bytes_written: int = 0
    counted: Mapping[str, frozenset[Event]] = field(default_factory=dict)

    @classmethod
    def of(
        cls, events: Iterable[Event], store: object = None, *, conversation: str | None = None
    ) -> TokenManagementMetrics:
        """What these events add up to, and the files that a store has written.

        Args:
            events: those of one session, or of several of the same conversation.
            store: a store with spill files, however it is wrapped; of any other none count.
            conversation: which it is, if metrics of other requests of it will be added.
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
            counted={} if conversation is None else {conversation: frozenset(every)},
        )

    def __add__(self, other: TokenManagementMetrics) -> TokenManagementMetrics:
        shared = self.counted.keys() & other.counted.keys()
        twice = [TokenManagementMetrics.of(self.counted[n] & other.counted[n]) for n in shared]
        sums = {
            name: getattr(self, name) + getattr(other, name) - sum(getattr(t, name) for t in twice)
            for name in _SUMS
        }
        both = {name: self.counted[name] | other.counted[name] for name in shared}
        return TokenManagementMetrics(**sums, counted={**self.counted, **other.counted, **both})

    def under_its_own_names(self) -> dict[str, int]:
        """The counters under the document's names, ``TotalTruncations`` and so on."""
        counters = asdict(self)
        return {name.title().replace("_", ""): counters[name] for name in _SUMS}


_SUMS = tuple(name for name in TokenManagementMetrics.__struct_fields__ if name != "counted")
