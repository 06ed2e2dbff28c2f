"""Thousands of quick random operations on one session, each view compared with a fresh one.

The plain generator beside the state machine: no shrinking, far more steps a second.
"""

import random
from collections import Counter

import pytest

from tests import histories
from tests.histories import Call, Turn
from tests.world import FORMAT_NAMES, World

WORDS = (
    "x",
    "short words",
    "other text\n" * 30,
    "a longer text than before\n" * 300,
)


def turn(dice):
    calls = tuple(
        Call(
            tool=dice.choice(histories.TOOLS),
            argument=dice.choice(("a.py", "b.py", histories.HUGE)),
            output=dice.choice(histories.SEEDS)
            * dice.choice((0, 1, 20, 90, 400)),
            failed=dice.random() < 0.2,
            items=dice.choice((0, 0, 1, 2)),
        )
        for _ in range(dice.choice((0, 1, 1, 2, 3)))
    )
    user = "and now this" if dice.random() < 0.2 else None
    return Turn(user=user, said=dice.choice(("", "Let me look.")), calls=calls)


OPERATIONS = {
    "append": (10, lambda world, dice: world.append(turn(dice))),
    "observe": (5, lambda world, dice: world.observe()),
    "rewind": (
        1,
        lambda world, dice: world.rewind(
            len(world.messages) - dice.randrange(12)
        ),
    ),
    "branch": (1, lambda world, dice: world.branch()),
    "say": (1, lambda world, dice: world.say(dice.choice(WORDS))),
    "rewrite": (
        1,
        lambda world, dice: world.rewrite(
            dice.randrange(99), dice.choice(WORDS)
        ),
    ),
    "block": (
        1,
        lambda world, dice: world.append_block(
            dice.randrange(99), dice.choice(WORDS)
        ),
    ),
    "respell": (1, lambda world, dice: world.respell(dice.randrange(99))),
    "copy": (
        1,
        lambda world, dice: world.replace_by_a_copy(dice.randrange(99)),
    ),
    "think": (1, lambda world, dice: world.think(dice.randrange(99))),
    "markers": (2, lambda world, dice: world.move_markers()),
    "clock": (
        1,
        lambda world, dice: setattr(world, "clock", dice.randrange(10**6)),
    ),
    "memo": (1, lambda world, dice: world.drop_memo()),
    "restart": (1, lambda world, dice: world.restart()),
}


@pytest.mark.parametrize("format", FORMAT_NAMES)
@pytest.mark.parametrize(
    ("window", "seed"), [(6_000, 0), (12_000, 1), (24_000, 2)]
)
def test_every_view_is_that_of_a_session_without_memory(format, window, seed):
    dice = random.Random(f"{format} {window} {seed}")
    provider, done = (dice.uniform(0.8, 1.3), dice.randrange(300)), Counter()
    world = World(format, window, reuse_ids=seed % 2 == 1, provider=provider)
    names, weights = (
        list(OPERATIONS),
        [weight for weight, _ in OPERATIONS.values()],
    )
    for _ in range(90):
        (name,) = dice.choices(names, weights)
        OPERATIONS[name][1](world, dice)
        done[name] += 1
        if len(world.messages) > 120:
            world.rewind(20)
        world.fit()
    assert {"append", "rewind", "branch", "rewrite"} <= done.keys()
    assert "pruned" in world.kinds
