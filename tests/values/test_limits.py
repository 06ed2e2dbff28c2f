import pytest

from ullage import ConfigError, Limits


@pytest.mark.parametrize(
    ("window", "reserve", "asked", "prompt"),
    [
        (200_000, None, None, 200_000 - 16_384),
        (64_000, None, None, 64_000 - 8_000),  # an eighth is less than 16,384
        (200_000, None, 4_096, 200_000 - 4_096),
        (
            200_000,
            10_000,
            4_096,
            190_000,
        ),  # the caller's own setting goes first
        (200_000, 0, 4_096, 200_000),
        (
            200_000,
            None,
            200_000,
            100_000,
        ),  # some SDKs always send the whole window
        (1, None, None, 1),
    ],
)
def test_what_is_left_for_the_prompt(window, reserve, asked, prompt):
    limits = Limits(window_tokens=window, output_reserve_tokens=reserve)
    assert limits.prompt_tokens(asked) == prompt


@pytest.mark.parametrize(
    ("window", "reserve", "setting"),
    [(0, None, "window_tokens"), (-1, None, "window_tokens"), (1_000, 1_000, "output"),
     (1_000, -1, "output")],
)  # fmt: skip
def test_limits_without_room_are_refused_with_numbers_and_a_remedy(
    window, reserve, setting
):
    with pytest.raises(ConfigError) as caught:
        Limits(window_tokens=window, output_reserve_tokens=reserve)
    assert caught.value.setting.startswith(setting)
    assert caught.value.remedy.startswith("Give ")
