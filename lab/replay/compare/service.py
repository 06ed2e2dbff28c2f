"""Full service of many runs: what each policy costs once every miss is paid for, summed up."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import asdict
from rich.table import Table

from lab.replay.compare.spread import Spread, spread_of
from lab.replay.service import Counts, Serviced, cost_usd
from ullage.tools.replay.tables import percent, table_with


class Service(Counts, frozen=True, kw_only=True):
    """Some runs at full service, summed.

    Attributes:
        runs: how many runs.
        usd: by price profile, what it costs of what keeping everything costs, answers
            included; no pause outlives the cache.
    """

    runs: int
    usd: dict[str, Spread]


def service_of(found: Iterable[Serviced]) -> Service | None:
    """What the service of these runs comes to; None without any."""
    each = list(found)
    if not each:
        return None
    names = [totals.profile.name for totals in each[0].totals]
    return Service(
        **asdict(sum(each, Counts())),
        runs=len(each),
        usd={
            name: spread_of((cost_usd(one, at) for one in each), worst="most")
            for at, name in enumerate(names)
        },
    )


def service_table(title: str, service: Service) -> Table:
    """A service for a terminal: a row for each price profile."""
    table = table_with(title, ("prices of",), _HEADINGS)
    tried = (service.searches, service.tries, service.wrong)
    counts = (service.faults, *tried, service.repeated, service.failed)
    for name, usd in service.usd.items():
        shares = (
            percent(share, "unknown")
            for share in (usd.pooled, usd.median, usd.worst_tenth)
        )
        table.add_row(name, *shares, *(f"{count:,}" for count in counts))
    return table


_HEADINGS = (
    *("cost at\nfull service", "median", "worst tenth"),
    *(
        "misses",
        "pages of\nsearches",
        "refs\nopened",
        "wrong",
        "tools\ncalled again",
        "failed\ncalls",
    ),
)

SERVICE_NOTES = (
    "full service: every value that was needed and not in view is paid for: a call of a recall\n"
    "tool and its page, pages that did not hold it (wrong), or the tool called again; a call\n"
    "fails where nothing could serve it"
)
"""What a table of service means; once for many tables."""
