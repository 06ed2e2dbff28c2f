"""Which conversations are held out: they pass unfitted, so that real bills can be compared.

A conversation is drawn by a keyed hash of what names it, so every worker draws the same ones, at
every turn and after a restart, and nobody has to remember which. The key is ours and the same
everywhere: it keeps names that were made for some other hash from meaning anything in this one.
"""

from __future__ import annotations

from blake3 import blake3

from ullage.core.errors import ConfigError

_KEY = blake3(b"ullage holdout 1").digest()
_BITS = 64


def is_held_out(conversation: str, share: float) -> bool:
    """Whether a conversation is held out.

    Args:
        conversation: what names it. Of two shares the larger one holds out the same ones and more.
        share: how many of all are, from 0 to 1.
    """
    if not share:
        return False
    name = conversation.encode("utf-8", "surrogatepass")
    drawn = int.from_bytes(blake3(name, key=_KEY).digest(_BITS // 8), "big")
    return drawn < share * (1 << _BITS)


def checked(share: float) -> float:
    """A share of conversations, checked as a setting.

    Args:
        share: from 0 to 1.

    Raises:
        ConfigError: it is outside of that.
    """
    if not 0 <= share <= 1:
        raise ConfigError(
            "holdout",
            f"{share} is no share",
            "Give 0 to 1: 0.05 is one in twenty.",
        )
    return share
