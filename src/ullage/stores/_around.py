"""A store around another: each call goes to the one underneath, unless it is done otherwise."""

from __future__ import annotations

from collections.abc import Callable
from typing import Concatenate, ParamSpec, TypeVar

from ullage.stores._base import Store, Transactional

__all__ = ["Around"]

P = ParamSpec("P")
T = TypeVar("T")


def _beneath(
    method: Callable[Concatenate[Store, P], T],
) -> Callable[Concatenate[Around, P], T]:
    """The same method of the store underneath."""
    name = method.__name__

    def call(self: Around, /, *given: P.args, **named: P.kwargs) -> T:
        found: Callable[P, T] = getattr(self.store, name)
        return found(*given, **named)

    call.__doc__ = f"`Store.{name}`."
    return call


class Around(Transactional):
    """The contract of `ullage.stores.Store`, done by the store underneath.

    Attributes:
        store: the store underneath; closing this closes it.
    """

    def __init__(self, store: Store) -> None:
        self.store = store
        self.name = store.name

    commit = _beneath(Store.commit)
    find = _beneath(Store.find)
    look = _beneath(Store.look)
    chunk = _beneath(Store.chunk)
    refs = _beneath(Store.refs)
    held = _beneath(Store.held)
    collect = _beneath(Store.collect)
    close = _beneath(Store.close)
