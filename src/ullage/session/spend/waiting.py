"""Waiting for what others have reserved of a budget.

A call may be refused although next to nothing is spent: others have reserved the rest for calls
under way. Most of that is given back as soon as those are over, so the same call may be made then.
"""

from __future__ import annotations

import time
from collections.abc import Generator

from ullage.session.spend.account import Account
from ullage.session.spend.budget import Budget

_FIRST_PAUSE_S = 0.01
_LONGEST_PAUSE_S = 0.25


def pauses(budget: Budget, account: Account) -> Generator[float, None, bool]:
    """The pauses to make until nothing that others have reserved is in the way of a call.

    A budget may be shared by threads, event loops and sessions that are dropped without a word, so
    it is asked again and again: a model call takes a hundred times longer than a pause.

    Args:
        budget: whose allowance it is.
        account: of the session that waits.

    Yields:
        Seconds to pause before the budget is asked again.

    Returns:
        Whether the call may be tried; False: for ``budget.wait_s`` no call of others has ended.
    """
    reserved = budget.others(account)
    until_s = time.monotonic() + budget.wait_s
    pause_s = _FIRST_PAUSE_S
    while reserved is not None:
        remaining_s = until_s - time.monotonic()
        if remaining_s <= 0:
            return False
        yield min(pause_s, remaining_s)
        pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)
        previous = reserved
        reserved = budget.others(account)
        # another call ended or began: the wait starts anew
        if reserved != previous:
            until_s = time.monotonic() + budget.wait_s
    return True
