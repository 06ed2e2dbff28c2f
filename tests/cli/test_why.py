"""``ullage window --why`` and the pages: the record that people read."""

import json

import pytest

from tests.cli.terminal import ullage
from tests.session.provider import Provider
from tests.session.test_stored import talked as talked_unseen
from tests.session.test_why import talked
from ullage.tools.cli import why, window  # noqa: F401
from ullage.tools.replay.report.why import RECKONED


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("why") / "kept.db"
    with pytest.MonkeyPatch.context() as patch:
        session, _ = talked(path, Provider().watch(patch))
    session.close()
    return str(path)


def test_it_says_what_left_and_why_the_cache_broke(path):
    text = ullage("window", "--why", "--store", path).text
    for words in (
        "The system prompt changed at character 1, so ",
        "The last call was 7 minutes ago, and its cache lives 5 minutes, so ",
        "The tools changed (`x` added), so ",
        "By the client: 2 times, ",
        "What left the window",
        "by ann: 1 text of read, ",
        "by ullage (record): ",
        " tokens in each of ",
        "/src/",
        RECKONED[:50],
    ):
        assert words in text, words
    assert ullage("window", "last", "--why", "--store", path).text == text


def test_a_program_reads_the_same(path):
    ran = ullage("window", "--why", "--json", "--store", path)
    record = json.loads(ran.text)
    assert [one["cause"] for one in record["breaks"]][:3] == [
        "system",
        "expired",
        "decision",
    ]
    assert all(one["is_measured"] for one in record["breaks"])
    assert {one["by"] for one in record["breaks"]} == {
        total["party"] for total in record["causes"]
    }
    assert record["batches"][0]["author"] == "ann"
    assert record["tools"][0]["name"] == "read"
    inspected = json.loads(ullage("inspect", path, "--json").text)
    assert inspected["why"] == record


def test_a_conversation_whose_cache_never_broke_says_so(tmp_path):
    path = str(tmp_path / "kept.db")
    session, _ = talked_unseen("anthropic", path, turns=2)
    session.close()
    text = ullage("window", "--why", "--store", path).text
    assert "The prompt cache never broke." in text


def test_the_page_of_a_conversation_has_it_as_data(path, tmp_path):
    page = tmp_path / "page.html"
    ran = ullage("inspect", path, "--html", str(page))
    assert "The tools changed (`x` added), so " in ran.text
    html = page.read_text(encoding="utf-8")
    assert "The tools changed (`x` added), so " in html
    assert 'id="why"' in html
