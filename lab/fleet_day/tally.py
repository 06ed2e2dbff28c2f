"""What happened on the day of a fleet, by team."""

from __future__ import annotations

import re
from collections import Counter

from msgspec import Struct, field

TEAMS = ("open", "tight", "warned", "shared")
MODEL, WINDOW, MOST_TOKENS = "claude-haiku-4-5", 12_000, 300
PROXIES, WORKERS = 2, 2
TURNS, TIGHT_TOKENS, TRIES = 12, 20_000, 60
OWNER = re.compile(rb"owner-(\d+)-")
READ_FILE = {
    "name": "read_file",
    "description": "Reads a file.",
    "input_schema": {
        "type": "object",
        "properties": {"path": {"type": "string"}},
    },
}
RECALL = "get_continuation"


def team_of(user: int) -> str:
    """The team of a user."""
    return TEAMS[user % len(TEAMS)]


def key_of(user: int) -> str:
    """The key that a user sends."""
    return f"key-of-user-{user}"


class TeamSums(Struct):
    """What the provider reported of one team's requests."""

    replies: int = 0
    tokens: int = 0
    usd: float = 0.0
    largest_tokens: int = 0

    def minus(self, earlier: TeamSums) -> tuple[int, float]:
        """Tokens and dollars since an earlier state."""
        return self.tokens - earlier.tokens, self.usd - earlier.usd


class DayTally(Struct):
    """What happened so far."""

    answered: int = 0
    conversations: int = 0
    requests: int = 0
    lost: int = 0
    mixed: int = 0
    unfound: int = 0
    opened: int = 0
    kills: int = 0
    broken: dict[str, int] = field(default_factory=Counter)
    stopped: dict[str, int] = field(default_factory=Counter)
    late: int = 0
    teams: dict[str, TeamSums] = field(
        default_factory=lambda: {team: TeamSums() for team in TEAMS}
    )
