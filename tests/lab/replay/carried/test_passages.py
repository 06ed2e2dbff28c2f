"""Passages that a reply repeats from far back, by who wrote them."""

from lab.replay.carried.carry import Carrier
from lab.replay.carried.passages import passages_of
from lab.replay.carried.policies import POLICIES
from lab.replay.carried.sight import Reader
from lab.replay.story import Story
from tests.replay.evidence.conversation import call, run_of, user
from ullage.tools.replay.calls import boundaries
from ullage.wires import FORMATS

SAID = "the harbour opens at nine and closes when the last ferry leaves"
WAIT = [
    call("bash", f"step {number} is done", command="make")
    for number in range(4)
]


def repeated(*parts):
    run = run_of(*parts)
    story = Story(FORMATS[run.format], run.messages)
    return [
        passage for of in passages_of(story, boundaries(run)) for passage in of
    ]


def test_a_passage_belongs_to_who_wrote_it_last():
    says = call("bash", "ok", said=f"As the user says: {SAID}.")
    assert [each.author for each in repeated(user(SAID), *WAIT, says)] == [
        "user"
    ]
    assert [
        each.author
        for each in repeated(user("Go."), call("a", SAID), *WAIT, says)
    ] == ["result"]
    first = call("bash", "ok", said=SAID)
    found = repeated(user("Go."), first, *WAIT, says)
    assert [each.author for each in found] == ["model"]
    asked = call("AskUserQuestion", SAID, questions="When?")
    assert [
        each.author for each in repeated(user("Go."), asked, *WAIT, says)
    ] == ["user"]


def test_what_is_new_or_short_is_no_passage():
    assert (
        repeated(user("Go."), call("a", SAID), call("b", "ok", said=SAID))
        == []
    )
    assert (
        repeated(
            user("Go."), call("a", "the harbour opens at nine"), *WAIT, WAIT[0]
        )
        == []
    )


def test_what_was_repeated_since_is_not_far():
    again = call("bash", "ok", said=SAID)
    assert (
        len(repeated(user(SAID), *WAIT, again, call("b", "ok", said=SAID)))
        == 1
    )


def test_of_a_longer_text_every_eight_words_are_one():
    text = " ".join(f"word{number}" for number in range(20))
    says = call("bash", "ok", said=text)
    found = repeated(user(text), *WAIT, says)
    assert [each.words.split()[0] for each in found] == ["word0", "word8"]


def test_a_view_says_it_whatever_stands_between_the_words():
    view = Reader(Story(FORMATS["openai-chat"])).view(
        user("| the harbour |\n| opens | at nine |")
    )
    assert view.says("the harbour opens at nine")
    assert not view.says("the harbour opens at nin")


def test_a_window_with_room_for_all_shows_every_passage_and_a_small_one_does_not():
    texts = [
        " ".join(f"w{number}x{at}" for at in range(400))
        for number in range(60)
    ]
    read = [call("read", text, path="a") for text in texts]
    says = [call("bash", "ok", said=text[:150]) for text in texts[:20]]
    carrier = Carrier(run_of(user("Go."), *read, *says))
    every = carrier.under(POLICIES["token_budget"](), 2_000_000).shown
    assert every.result == every.result_shown > 20
    small = carrier.under(POLICIES["default"](), 16_000).shown
    assert small.result_shown < small.result == every.result
