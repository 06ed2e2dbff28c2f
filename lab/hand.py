"""Users' hands, agents, workers, restarts and forks in any order, for as long as one likes.

    python -m lab.hand --steps 100000

Each run is a random conversation of a seed: turns, pins, drops, restores, undos, notes, rewinds,
branches, restarts, a second worker on the same store, and decisions from beside on it.
`tests.world` judges every view: legal, within its limit, counted to the token, the same from the
ledger alone, and that all of it opens. `tests.properties.test_hand` judges that what is pinned is
whole, or told why not. A run that fails is printed by its seed with the steps that led there; the
status is 1 then.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, NamedTuple

from lab.fuzz.tally import be_quiet
from tests import histories
from tests.properties.test_hand import REFUSALS, Hands
from tests.world import OLD_WIRES, as_bytes
from ullage.core.history.hand import entered_in
from ullage.core.values.decisions import Verb
from ullage.session.stored.conversation import (
    conversation,
    decide,
    decision_of,
)
from ullage.stores import open_store

STEPS_A_RUN = 20
_LINES = {"short": 1, "some": 20, "long": 120, "huge": 500}
_NOTES = ("Never touch main.", "Keep it short. " * 40)


class Failed(NamedTuple):
    """A run that came to something wrong.

    Attributes:
        seed: of the run.
        error: what was wrong.
        steps: what was done until then.
    """

    seed: int
    error: BaseException
    steps: list[str]


def run(seed: int, steps: int = STEPS_A_RUN) -> Failed | None:
    """One conversation; None where all is well.

    Args:
        seed: says what happens in it.
        steps: how many steps it has.
    """
    rng, done = random.Random(seed), list[str]()
    names, weights = list(_STEPS), [weight for weight, _ in _STEPS.values()]
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "store.db" if rng.random() < 0.3 else None
        window = rng.choice((4_000, 6_000, 12_000, 40_000))
        world = Hands(rng.choice(OLD_WIRES), window, store)
        done.append(f"{world.format} in {window:,} tokens")
        try:
            world.fit()
            for _ in range(rng.randrange(1, 12)):
                world.append(_turn(rng))
            for _ in range(steps):
                (name,) = rng.choices(names, weights)
                done.append(name)
                _STEPS[name][1](world, rng)
        except Exception as error:  # noqa: BLE001 - whatever it is, the seed tells it again
            return Failed(seed, error, done)
        finally:
            world.close()
    return None


def _turn(rng: random.Random) -> histories.Turn:
    calls = tuple(_call(rng) for _ in range(rng.choice((0, 1, 1, 1, 2))))
    return histories.Turn(
        user=rng.choice((None, None, "Do it now, please.")),
        said=rng.choice(("", "I look.", "The next step.")),
        calls=calls,
        thought=rng.random() < 0.3,
    )


def _call(rng: random.Random) -> histories.Call:
    count = _LINES[rng.choice(tuple(_LINES))]
    return histories.Call(
        tool=rng.choice(histories.TOOLS),
        argument=rng.choice(("a.py", histories.LARGE, "b")),
        output="".join(
            f"{at} line of {rng.randrange(9)} output\n" for at in range(count)
        ),
        failed=rng.random() < 0.2,
        items=rng.choice((0, 0, 1, 2)),
    )


def _append(world: Any, rng: random.Random) -> None:
    fits = rng.random() < 0.5
    for _ in range(rng.randrange(1, 4)):
        world.append(_turn(rng))
        if fits:
            world.fit()


def _observe(world: Any, rng: random.Random) -> None:
    world.fit()
    world.observe()


def _target(world: Any, rng: random.Random) -> str:
    name: str = world.name(rng.randrange(40), rng.choice((None, None, 1, 2)))
    return name


def _restore(world: Any, rng: random.Random) -> None:
    world.decide(
        "restore",
        _target(world, rng),
        when=rng.choice(("batch", "end", "now")),
    )


def _pin_lines(world: Any, rng: random.Random) -> None:
    world.decide("pin", world.name(rng.randrange(40), None), lines=(2, 4))


def _undo_a_decision(world: Any, rng: random.Random) -> None:
    if decisions := world.session.decisions:
        world.decide("undo", rng.choice(decisions).name)


def _undo_an_undo(world: Any, rng: random.Random) -> None:
    before = world.fit()
    if (undone := world.decide("undo")) is not None:
        world.fit()
        world.decide("undo", undone)
        assert as_bytes(world.fit()) == as_bytes(before), (
            "an undo of an undo differs"
        )


def _work_beside(world: Any, rng: random.Random) -> None:
    """A second worker decides on the same store, and both show the same."""
    world.fit()
    if world.path is None:
        return
    with world.new_session(store=world.path) as other:
        other.fit(world.request())
        other.note("from beside")
        world.grown = False
        assert as_bytes(other.fit(world.request())) == as_bytes(world.fit()), (
            "two workers differ"
        )


def _decide_in_store(world: Any, rng: random.Random) -> None:
    """Somebody without the history decides on the store, and the next view shows it."""
    world.fit()
    if world.path is None:
        return
    world.grown = False
    with closing(open_store(world.path)) as store, suppress(*REFUSALS):
        stored = conversation(store, "")
        verbs: tuple[Verb, ...] = ("pin", "drop", "undo")
        verb, target = rng.choice(verbs), None
        if verb != "undo":
            target = _target(world, rng)
        name = decide(store, stored, decision_of(stored, verb, target))
        world.fit()
        ledger = world.session.state.ledger
        transcript = world.session.window.transcript
        names = {one.name for one in entered_in(transcript, ledger)}
        is_here = transcript.find(stored.key) is not None
        assert name in names or not is_here, "it is not in the next view"


_STEPS: dict[str, tuple[int, Callable[[Any, random.Random], object]]] = {
    "append": (3, _append),
    "fit": (1, lambda world, rng: world.fit(use_async=rng.random() < 0.1)),
    "observe": (1, _observe),
    "pin": (2, lambda world, rng: world.decide("pin", _target(world, rng))),
    "pin lines": (1, _pin_lines),
    "drop": (1, lambda world, rng: world.decide("drop", _target(world, rng))),
    "restore": (1, _restore),
    "note": (1, lambda world, rng: world.decide("note", rng.choice(_NOTES))),
    "undo": (1, lambda world, rng: world.decide("undo")),
    "undo a decision": (1, _undo_a_decision),
    "undo an undo": (1, _undo_an_undo),
    "think": (1, lambda world, rng: world.think(rng.randrange(40))),
    "rewind": (1, lambda world, rng: world.rewind(rng.randrange(40))),
    "branch": (1, lambda world, rng: world.branch()),
    "forget": (1, lambda world, rng: world.drop_memo()),
    "restart": (1, lambda world, rng: world.restart()),
    "another worker": (1, _work_beside),
    "decide in the store": (1, _decide_in_store),
    "read back": (1, lambda world, rng: world.read_everything_back()),
}
"""What may be done, and how often."""


def main() -> None:
    """Run as many steps as are asked for; end with status 1 where anything was wrong."""
    parser = argparse.ArgumentParser(
        description=__doc__.partition("\n")[0] if __doc__ else ""
    )
    parser.add_argument(
        "--steps", type=int, default=10_000, help="steps in all"
    )
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    asked = parser.parse_args()
    be_quiet()
    runs, wrong = max(asked.steps // STEPS_A_RUN, 1), 0
    for seed in range(asked.seed, asked.seed + runs):
        failed = run(seed)
        if failed is not None:
            wrong += 1
            said = str(failed.error)[:200]
            print(f"seed {seed}: {type(failed.error).__name__}: {said}")
            print(f"  {', '.join(failed.steps)}")
    print(
        f"{runs * STEPS_A_RUN:,} steps in {runs:,} runs from seed {asked.seed}: {wrong:,} wrong"
    )
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
