from hypothesis import given
from hypothesis import strategies as st

from ullage.core.history.measures import Measure, Tally

changes = st.lists(
    st.tuples(st.integers(0, 20), st.integers(0, 99)), max_size=20
)


@given(st.lists(st.integers(0, 99), min_size=1, max_size=20), changes)
def test_a_tally_is_the_sum_and_looks_only_at_what_is_new(values, changed):
    asked = []

    def measure(index):
        asked.append(index)
        return values[index]

    tally = Tally(Measure("tests.sizes", lambda _, index: values[index]))
    half = len(values) // 2
    assert tally.to(half, measure).sum == sum(values[:half])
    assert tally.to(len(values), measure).sum == sum(values)
    assert asked == list(range(len(values)))
    for index, value in changed:
        if index < len(values):
            values[index] = value
            tally.invalidate(index)
    asked.clear()
    assert tally.to(len(values), measure).sum == sum(values)
    assert set(asked) == {index for index, _ in changed if index < len(values)}
    assert tally.each == values
