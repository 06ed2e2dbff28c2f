"""One turn: a request in, a request that fits out, as a generator of effects."""

from ullage.core.turn.terms import Settings
from ullage.core.turn.turn import State, Turned, observe, turn, wire_of

__all__ = ["Settings", "State", "Turned", "observe", "turn", "wire_of"]
