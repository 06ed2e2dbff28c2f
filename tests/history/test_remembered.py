"""What is remembered: bounded in bytes, what is asked for stays, nothing is answered wrongly."""

import threading

from hypothesis import given
from hypothesis import strategies as st

from ullage.core.history.remembered import Remembered


def test_what_was_not_asked_for_longest_is_forgotten():
    memory = Remembered(20_000)
    for number in range(100):
        memory.put(number, str(number), 1_000)
        assert memory.get(0) == "0", "asked for all the time"
    held = [number for number in range(100) if memory.get(number) is not None]
    assert 99 in held
    assert 50 not in held
    assert len(held) * 1_400 <= 2 * 20_000


def test_a_value_larger_than_all_of_it_is_not_kept_for_long():
    memory = Remembered(1_000)
    memory.put("large", "x", 10_000)
    memory.put("next", "y", 10_000)
    memory.put("last", "z", 10_000)
    assert memory.get("large") is None


def test_a_falsy_value_is_a_value_and_clear_forgets():
    memory = Remembered(10_000)
    memory.put("none", 0)
    assert memory.get("none") == 0
    memory.clear()
    assert memory.get("none") is None


@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 900)), max_size=200)
)
def test_what_is_found_is_what_was_put_last(puts):
    memory, last = Remembered(4_000), {}
    for key, value in puts:
        memory.put(key, value, value)
        last[key] = value
        for known in range(10):
            assert memory.get(known) in (None, last.get(known))


def test_threads_never_see_another_value():
    memory, wrong = Remembered(8_000), []

    def work(seed):
        for step in range(3_000):
            key = (seed * 31 + step * 7) % 97
            found = memory.get(key)
            wrong.extend([key] if found not in (None, key) else [])
            memory.put(key, key, 100)

    threads = [
        threading.Thread(target=work, args=(seed,)) for seed in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
