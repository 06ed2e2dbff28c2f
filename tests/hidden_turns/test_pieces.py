"""What comes in pieces, put together."""

from ullage.wires.hidden_turns.pieces import add, summed, whole


def test_deltas():
    into = {}
    for delta in (
        {"role": "assistant", "content": "", "refusal": None},
        {
            "content": "a",
            "details": [{"index": 0, "type": "text", "text": "x"}],
        },
        {
            "content": "b",
            "details": [{"index": 0, "text": "y"}, {"index": 1, "text": "z"}],
        },
        {
            "content": None,
            "role": "assistant",
            "extra": {"score": 1},
            "seen": [1],
        },
        {"extra": {"score": 2, "why": "w"}, "seen": [2]},
    ):
        add(into, delta)
    assert whole(into) == {
        "role": "assistant",
        "content": "ab",
        "refusal": None,
        "details": [
            {"index": 0, "type": "text", "text": "xy"},
            {"index": 1, "text": "z"},
        ],
        "extra": {"score": 2, "why": "w"},
        "seen": [1, 2],
    }


def test_the_prompt_of_the_last_and_the_output_of_all():
    usages = [
        {"in": 5, "out": 1, "details": {"thought": 1}, "all": 6},
        None,
        {
            "in": 7,
            "out": 2,
            "details": {"thought": None, "audio": 3},
            "all": 9,
            "tier": "x",
        },
    ]
    assert summed(usages, ("out", "details"), "all") == {
        "in": 7,
        "out": 3,
        "details": {"thought": 1, "audio": 3},
        "all": 10,
        "tier": "x",
    }


def test_counts_by_modality():
    one = {"of": [{"modality": "TEXT", "tokenCount": 1}]}
    other = {
        "of": [
            {"modality": "TEXT", "tokenCount": 2},
            {"modality": "IMAGE", "tokenCount": 3},
        ]
    }
    assert summed([one, other], ("of",))["of"] == [
        {"modality": "TEXT", "tokenCount": 3},
        {"modality": "IMAGE", "tokenCount": 3},
    ]


def test_nonsense_and_nothing():
    assert summed([], ("out",)) is None
    assert summed([None, {"out": "many"}], ("out",)) == {"out": "many"}
    assert summed([{"out": "many"}, {"out": 2}], ("out",)) == {"out": 2}
    assert summed([{"out": 2}, {}], ("out",), "all") == {"out": 2}
