from hypothesis import given
from hypothesis import strategies as st

from demo.status import Address, Answered, Status

paths = st.from_regex(r"(stdlib|site)(/[a-z_]{1,8}){1,3}\.py", fullmatch=True)
lines = st.integers(0, 99_999)
statuses = st.builds(
    Status,
    call=st.integers(0, 999),
    question=st.integers(0, 20),
    step=st.sampled_from(["start", "find", "recall", "done"]),
    tries=st.integers(0, 99),
    found=st.lists(
        st.tuples(
            st.sampled_from(["def", "imp", "call"]),
            st.builds(Address, paths, lines),
        ),
        max_size=3,
    ).map(tuple),
    answered=st.lists(
        st.builds(Answered, st.integers(0, 20), paths, lines, lines),
        max_size=4,
    ).map(tuple),
)


@given(statuses, statuses)
def test_the_last_status_in_a_text_is_read_back_whole(earlier, status):
    assert (
        Status.read(f"Some account: {earlier} and so on.\n{status}") == status
    )


def test_a_text_without_a_status_has_none():
    assert Status.read("[status of the world]") is None
