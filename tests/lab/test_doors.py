"""Trying the doors: there is one for each example that a user may begin with."""

from pathlib import Path

import pytest

from lab import doors

EXAMPLES = Path(__file__).parents[2] / "examples"


def test_each_door_is_an_example_and_there_are_eight():
    assert len(doors.DOORS) == 8
    assert all((EXAMPLES / f"{name}.py").exists() for name in doors.DOORS)


def test_a_door_that_sends_too_much_fails(monkeypatch, tmp_path, capsys):
    def sends_all(name, wheel, folder):
        raise ValueError(f"{name}: 420,000 bytes were sent")

    monkeypatch.setattr(
        doors, "built", lambda folder: (folder / "none.whl", None)
    )
    monkeypatch.setattr(doors, "tried", sends_all)
    assert doors.main(["loop_openai"]) == 1
    assert "420,000 bytes" in capsys.readouterr().out


@pytest.mark.parametrize("url", ["", "http://127.0.0.1:1"])
def test_its_environment_is_bare(url, tmp_path):
    environment = doors._environment(tmp_path, tmp_path / "bin", url)
    assert set(environment) - {"PATH", "HOME"} == set(doors.KEYS) | (
        {"ANTHROPIC_BASE_URL", "OPENAI_BASE_URL", "GOOGLE_GEMINI_BASE_URL"}
        if url
        else set()
    )
