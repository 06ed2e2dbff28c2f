"""The counters of the three-layer document, counted from the events of sessions.

    metrics = TokenManagementMetrics.of(session.events, session.store)

They can be added. A session that begins again at each request makes cuts again that an earlier one
made; each counts once. Where the metrics of several conversations are added, say which is which,
or what two of them have in common to the letter counts once as well:

    metrics += TokenManagementMetrics.of(session.events, conversation=conversation_id)

Give a store that several share once. The document's own names are those of
`TokenManagementMetrics.under_its_own_names`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import Struct

from ullage.core.values.events import Event, Kind
from ullage.stores import files_of


class TokenManagementMetrics(Struct, frozen=True, kw_only=True):
    """Eight sums (three-layer document, "Monitoring and Metrics"). They can be added.

    Attributes:
        events: what was counted, by conversation.
        spill_files_created: files written beside the store.
        spill_bytes_written: bytes written to them.
    """

    events: Mapping[str, frozenset[Event]] = {}
    spill_files_created: int = 0
    spill_bytes_written: int = 0

    @classmethod
    def of(
        cls,
        events: Iterable[Event],
        store: object = None,
        *,
        conversation: str = "",
    ) -> TokenManagementMetrics:
        """What these events add up to, and the files that a store has written.

        Args:
            events: those of one session, or of several of the same conversation.
            store: a store with spill files, however it is wrapped; of any other none count.
            conversation: which it is, if metrics of other conversations will be added.
        """
        files = files_of(store)
        return cls(
            events={conversation: frozenset(events)},
            spill_files_created=files.files_created if files else 0,
            spill_bytes_written=files.bytes_written if files else 0,
        )

    def __add__(self, other: TokenManagementMetrics) -> TokenManagementMetrics:
        events = dict(self.events)
        for conversation, more in other.events.items():
            events[conversation] = events.get(conversation, frozenset()) | more
        return TokenManagementMetrics(
            events=events,
            spill_files_created=self.spill_files_created
            + other.spill_files_created,
            spill_bytes_written=self.spill_bytes_written
            + other.spill_bytes_written,
        )

    def _of(self, kind: Kind) -> list[Event]:
        return [
            event
            for events in self.events.values()
            for event in events
            if event.kind == kind
        ]

    def _won(self, kind: Kind) -> int:
        return sum(
            event.tokens_before - event.tokens_after
            for event in self._of(kind)
        )

    def under_its_own_names(self) -> dict[str, int]:
        """The counters under the document's names.

        Bytes are those of UTF-8 that the truncations left out; tokens those that prunings and
        compactions won, as the window counts, markers included.
        """
        truncated = self._of("truncated")
        return {
            "TotalTruncations": len(truncated),
            "TotalPrunings": len(self._of("pruned")),
            "TotalCompactions": len(self._of("compacted")),
            "BytesTruncated": sum(event.left_out_bytes for event in truncated),
            "TokensPruned": self._won("pruned"),
            "TokensCompacted": self._won("compacted"),
            "SpillFilesCreated": self.spill_files_created,
            "SpillBytesWritten": self.spill_bytes_written,
        }
