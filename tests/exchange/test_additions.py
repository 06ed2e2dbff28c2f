"""What is remembered of refused additions: whose it is, for how long, and how much of it."""

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ullage.doors.exchange.additions import (
    ADDITIONS,
    HOLDS_S,
    MOST_OF_A_TENANT,
    MOST_REFUSALS,
    Refusals,
    RequestTarget,
    named_in,
)
from ullage.doors.exchange.refusals import KnownRefusals

HERE = RequestTarget(
    "ann", "https://gateway.example/v1", "openai-chat", "local"
)


def learn(
    refusals,
    target=HERE,
    addition="tools",
    *,
    is_named=True,
    own_tools=1,
    now_s=0.0,
):
    return refusals.with_refusal(
        target, addition, is_named=is_named, own_tools=own_tools, now_s=now_s
    )


def test_what_the_words_named_holds_at_once_and_for_an_hour():
    refusals = learn(Refusals(), now_s=100.0)
    assert refusals.of(HERE, 1, 100.0) == {"tools"}
    assert refusals.of(HERE, 1, 99.0 + HOLDS_S) == {"tools"}
    assert refusals.of(HERE, 1, 100.0 + HOLDS_S) == set()


def test_what_no_word_named_holds_once_it_came_twice_within_an_hour():
    once = learn(Refusals(), is_named=False)
    assert once.of(HERE, 1, 0.0) == set()
    assert learn(once, is_named=False, now_s=5.0).of(HERE, 1, 5.0) == {"tools"}
    assert (
        learn(once, is_named=False, now_s=HOLDS_S).of(HERE, 1, HOLDS_S)
        == set()
    )


@pytest.mark.parametrize("field", RequestTarget.__struct_fields__)
def test_it_holds_for_no_other_tenant_upstream_wire_or_model(field):
    others = {
        name: getattr(HERE, name) for name in RequestTarget.__struct_fields__
    } | {field: "other"}
    assert learn(Refusals()).of(RequestTarget(**others), 1, 0.0) == set()


def test_a_request_with_fewer_tools_than_any_that_was_refused_is_offered_them():
    refusals = learn(learn(Refusals(), own_tools=64), own_tools=70)
    assert refusals.of(HERE, 63, 0.0) == set()
    assert refusals.of(HERE, 64, 0.0) == {"tools"}
    with_options = learn(Refusals(), addition="stream_options", own_tools=64)
    assert with_options.of(HERE, 0, 0.0) == {"stream_options"}


def test_a_reply_to_a_request_with_the_addition_disproves_it():
    refusals = learn(Refusals(), is_named=False, own_tools=64)
    assert refusals.without(HERE, {"tools"}, 63) == refusals
    assert refusals.without(HERE, {"stream_options"}, 64) == refusals
    assert refusals.without(HERE, {"tools"}, 64) == Refusals()


additions = st.sampled_from(ADDITIONS)
targets = st.builds(
    RequestTarget,
    st.sampled_from(["ann", "bob"]),
    st.just(HERE.upstream),
    st.just("openai-chat"),
    st.integers(0, 2 * MOST_OF_A_TENANT).map(str),
)


@given(st.lists(st.tuples(targets, additions), max_size=300))
def test_one_tenant_pushes_nothing_of_another_out(refused):
    refusals = learn(Refusals(), RequestTarget("eve", "u", "w", "m"))
    for target, addition in refused:
        refusals = learn(refusals, target, addition)
    assert refusals.of(RequestTarget("eve", "u", "w", "m"), 1, 0.0) == {
        "tools"
    }
    for tenant in ("ann", "bob"):
        rows = [
            target for target, _ in refusals.rows if target.tenant == tenant
        ]
        assert len(rows) <= MOST_OF_A_TENANT
    if refused:
        target, addition = refused[-1]
        assert addition in refusals.of(target, 1, 0.0)


def test_all_tenants_together_have_a_bound():
    (row,) = learn(Refusals()).rows.values()
    many = {
        (RequestTarget(str(n), "u", "w", "m"), "tools"): row
        for n in range(MOST_REFUSALS)
    }
    refusals = learn(Refusals(many))
    assert len(refusals.rows) == MOST_REFUSALS
    assert refusals.of(RequestTarget("0", "u", "w", "m"), 1, 0.0) == set()
    assert refusals.of(HERE, 1, 0.0) == {"tools"}


def test_a_value_is_not_changed_by_what_is_learnt_after_it():
    before = learn(Refusals())
    rows = dict(before.rows)
    learn(before, addition="stream_options")
    before.without(HERE, {"tools"}, 1)
    assert before.rows == rows


def test_many_threads_lose_nothing():
    known = KnownRefusals(lambda: 0.0)
    mine = [
        [RequestTarget(f"{n}", "u", "w", str(m)) for m in range(40)]
        for n in range(8)
    ]

    def run(targets):
        for target in targets:
            known.learn(target, "tools", is_named=True, own_tools=1)
            assert known.of(target, 1) == {"tools"}

    threads = [
        threading.Thread(target=run, args=(targets,)) for targets in mine
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(known.newest.rows) == 8 * 40


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (
            "Invalid 'tools': array too long. Expected an array with maximum length 128",
            {"tools"},
        ),
        ("Function calling is not supported by this model", {"tools"}),
        ("tool_choice.tools[1]: no such tool", {"tools"}),
        ("there is no get_continuation here", {"tools"}),
        (
            '{"loc": ["body", "stream_options"], "msg": "Extra inputs are not permitted"}',
            None,
        ),
        ("Unrecognized request argument supplied: include_usage", None),
        (
            "system.0.cache_control: Extra inputs are not permitted",
            {"cache_control"},
        ),
        ("Bad request", set()),
        ("", set()),
    ],
)
def test_the_words_that_name_an_addition(words, named):
    assert named_in(words.encode()) == (
        {"stream_options"} if named is None else named
    )
