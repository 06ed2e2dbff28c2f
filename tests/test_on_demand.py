"""What is remembered of texts has a bound in their length, too."""

from ullage.core.on_demand import cached_by_text


def test_a_long_text_is_worked_out_each_time_and_a_short_one_once():
    asked = []

    @cached_by_text(2, most_chars=3)
    def length(text):
        asked.append(text)
        return len(text)

    assert [length(text) for text in ("abc", "abc", "abcd", "abcd")] == [
        3,
        3,
        4,
        4,
    ]
    assert asked == ["abc", "abcd", "abcd"]
