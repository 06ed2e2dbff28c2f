"""Every setting and every word of a policy changed in turn, one at a time.

A policy is stages with what is bound to them, and that may be bound again. `mutated` gives each
policy that differs from one in a single place, with the name of that place. A scenario that
comes out the same for one of them does not prove what stands there.
"""

from functools import partial

from msgspec import Struct
from msgspec.structs import fields, replace

STAGES = ("on_arrival", "under_pressure")


def mutated(policy):
    """(place, policy) of every single change."""
    for moment in STAGES:
        stages = getattr(policy, moment)
        for at, stage in enumerate(stages):
            rest = (*stages[:at], *stages[at + 1 :])
            yield f"without {moment}[{at}]", replace(policy, **{moment: rest})
            for place, other in _mutated(stage, f"{moment}[{at}]"):
                changed = (*stages[:at], other, *stages[at + 1 :])
                yield place, replace(policy, **{moment: changed})
    yield "without guard", replace(policy, guard=None)
    for place, other in _mutated(policy.guard, "guard"):
        yield place, replace(policy, guard=other)


def _mutated(bound, place):
    """The partials that differ from one in a keyword of it, or of one bound in it."""
    for name, value in bound.keywords.items():
        for where, other in _others(value, f"{place}.{name}"):
            yield (
                where,
                partial(
                    bound.func, *bound.args, **{**bound.keywords, name: other}
                ),
            )


def _others(value, here):
    """(place, value) of every single change of what is bound."""
    if isinstance(value, partial):
        return _mutated(value, here)
    if isinstance(value, Struct):
        return _words_mutated(value, here)
    if isinstance(value, tuple) and any(
        isinstance(each, Struct) for each in value
    ):
        return [(here, ())]
    return [(here, _other(value))]


def _words_mutated(words, here):
    for field in fields(words):
        other = _other(getattr(words, field.name))
        yield f"{here}.{field.name}", replace(words, **{field.name: other})


def _other(value):
    """Another value of the same kind, far from it; for a function, one that does the reverse."""
    match value:
        case str():
            return f"{value}~"
        case bool():
            return not value
        case int():
            return value // 2
        case float():
            return 1 - value
        case tuple():
            return (*value, "~")
        case None:
            return 1
        case Struct():
            first = fields(value)[0].name
            return replace(value, **{first: _other(getattr(value, first))})
    return lambda *arguments: _reverse(value(*arguments))


def _reverse(value):
    """Spots in the other order; nothing protected where something was."""
    return (1 << 30, 0) if isinstance(value, tuple) else list(value)[::-1]


def settings_mutated(settings):
    """(key, settings) with each setting of a preset changed in turn."""
    for field in fields(settings):
        other = _other(getattr(settings, field.name))
        yield field.name, replace(settings, **{field.name: other})
