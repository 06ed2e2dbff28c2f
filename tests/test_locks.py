"""An interrupt leaves a lock as it found it."""

import signal
import threading

import pytest

from ullage.core.locks import Lock, RLock

INTERRUPTS = 200


class _Stop(Exception):
    """What the handler of the signal raises."""


@pytest.fixture
def alarm():
    """A signal that comes soon, and raises."""

    def stop(*_):
        raise _Stop

    before = signal.signal(signal.SIGALRM, stop)
    yield lambda: signal.setitimer(signal.ITIMER_REAL, 0.000_05)
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


def is_free(lock):
    """Whether another thread can take it."""
    got = []
    other = threading.Thread(
        target=lambda: got.append(lock.acquire(timeout=0.01))
    )
    other.start()
    other.join()
    return got[0]


@pytest.mark.parametrize("make", [Lock, RLock])
def test_no_interrupt_leaves_it_taken(make, alarm):
    left = 0
    for _ in range(INTERRUPTS):
        lock = make()
        try:
            alarm()
            while True:
                with lock:
                    pass
        except _Stop:
            left += not is_free(lock)
    assert left == 0


def test_it_keeps_other_threads_out():
    lock = Lock()
    with lock:
        assert not is_free(lock)
    assert is_free(lock)


def test_its_thread_may_take_it_again():
    lock = RLock()
    with lock, lock:
        assert not is_free(lock)
    assert is_free(lock)
