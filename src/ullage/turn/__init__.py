"""One turn: a request in, a request that fits out, as a generator of effects."""

from ullage.turn.terms import Settings
from ullage.turn.turn import State, Turned, observe, turn, wire_of

__all__ = ["Settings", "State", "Turned", "observe", "turn", "wire_of"]
