"""The bench of digests: every step does the one before and more."""

from lab.bench.digests import rates


def test_each_step_does_some_of_the_work():
    found = dict(
        rates(
            ["def old_name(first_arg):\n    return first_arg\n" * 40] * 3,
            tries=1,
        )
    )
    assert next(iter(found)) == "parted into words"
    assert list(found)[-1] == "and the lines chosen"
    assert all(rate > 0 for rate in found.values())
