"""One turn: a request in, a request that fits out, as a generator of effects."""

from ullage.core.turn.observing import observe
from ullage.core.turn.settings import Settings
from ullage.core.turn.state import State, TurnResult, wire_of
from ullage.core.turn.turn import turn

__all__ = ["Settings", "State", "TurnResult", "observe", "turn", "wire_of"]
