"""`python -m lab.replay` on small recordings: the frame, floors, full service, held-out tasks."""

from lab.replay.__main__ import command
from tests.cli.terminal import ran_by
from tests.cli.test_replay import errands


def replay(*words):
    return ran_by(command, words)


def test_what_is_below_a_floor_is_told_and_is_not_the_cheapest(tmp_path):
    asked = (
        "--policy",
        "default",
        "--policy",
        "last_call",
        "--cache",
        "anthropic-5m",
        "--jobs",
        1,
    )
    ran = replay(errands(tmp_path, 1), *asked, "--json")
    rows = {row["policy"]: row for row in ran.json["rows"]}
    assert "far" in rows["last_call"]["below"]
    assert not rows["last_call"]["passes"]
    assert rows["default"]["passes"]
    assert {each["policy"] for each in ran.json["cheapest"]} == {"default"}
    assert {floor["name"] for floor in ran.json["floors"]} >= {
        "far",
        "anchors",
        "breaks",
    }
    text = replay(errands(tmp_path, 1), *asked).text
    assert text.index("evidence first") < text.index("then cost")
    assert "far ≥ 0.84" in text
    assert text.count("★") == 1


def test_the_oracle_reaches_the_floors_and_wins_nothing(tmp_path):
    asked = (
        "--policy",
        "belady",
        "--policy",
        "recency",
        "--floor",
        "breaks=100",
        "--jobs",
        1,
    )
    ran = replay(errands(tmp_path, 1), *asked, "--json")
    rows = {row["policy"]: row for row in ran.json["rows"]}
    assert rows["belady"]["below"] == []
    assert not rows["belady"]["passes"]
    assert "belady" not in {each["policy"] for each in ran.json["cheapest"]}


def test_a_floor_can_be_given(tmp_path):
    limits = (
        "far=0",
        "line=0",
        "reuse=0",
        "anchors=0",
        "breaks=100",
        "unsaid=1",
        "invalid=99",
    )
    words = [word for limit in limits for word in ("--floor", limit)]
    asked = ("--policy", "last_call", *words, "--jobs", 1)
    ran = replay(errands(tmp_path, 1), *asked, "--json")
    assert ran.json["rows"][0]["below"] == []


def test_a_budget_is_a_share_of_each_run_and_several_make_a_curve(tmp_path):
    asked = (
        "--budget",
        "30%",
        "--budget",
        "0.5",
        "--policy",
        "recency",
        "--policy",
        "belady",
    )
    ran = replay(errands(tmp_path, 2), *asked, "--jobs", 1, "--json")
    rows = [(row["share"], row["policy"]) for row in ran.json["rows"]]
    assert rows == [
        (0.3, "belady"),
        (0.3, "recency"),
        (0.5, "belady"),
        (0.5, "recency"),
    ]
    beside = ran.json["compared"]
    assert {
        point["skill"]
        for point in beside["points"]
        if point["policy"] == "recency"
    } == {0}
    assert [curve["rooms"] for curve in beside["curves"]] == [[0.3, 0.5]] * 2
    assert beside["curves"][1]["auc_to_first"]["n"] == 2
    assert (
        "over several budgets"
        in replay(errands(tmp_path, 2), *asked, "--jobs", 1).text
    )


def test_full_service_is_paid_where_it_is_asked_for(tmp_path):
    asked = (
        "--budget",
        "20%",
        "--policy",
        "last_call",
        "--cache",
        "none",
        "--jobs",
        1,
    )
    ran = replay(errands(tmp_path, 2), *asked, "--serve", "--json")
    (row,), (sum_,) = ran.json["rows"], ran.json["services"]
    assert sum_["service"]["faults"] > 0
    assert (
        sum_["service"]["usd"]["none"]["pooled"]
        > row["charges"][0]["usd_share"]
    )
    assert (
        "at full service"
        in replay(errands(tmp_path, 1), *asked, "--serve").text
    )
    assert (
        replay(errands(tmp_path, 2), *asked, "--json").json["services"] == []
    )


def test_a_task_is_on_one_side_of_the_split(tmp_path):
    path, sides = errands(tmp_path), {}
    for side in ("dev", "held-out", "all"):
        ran = replay(path, "--split", side, "--runs", "--jobs", 1, "--json")
        sides[side] = {row["name"] for row in ran.json["rows"]} - {"all"}
    assert sides["dev"]
    assert sides["held-out"]
    assert sides["dev"] & sides["held-out"] == set()
    assert sides["dev"] | sides["held-out"] == sides["all"]


def test_the_page_tells_the_command_that_prints_its_figures_again(tmp_path):
    page = tmp_path / "report.html"
    asked = (
        "--budget",
        "30%",
        "--floor",
        "far=0.5",
        "--split",
        "dev",
        "--serve",
        "--jobs",
        1,
    )
    ran = replay(errands(tmp_path), *asked, "--html", page, "--draw", 0)
    assert ran.status == 0
    again = "--budget 0.3 --jobs 1 --html report.html --draw 0 --floor far=0.5 --split dev --serve"
    assert f"python -m lab.replay errands.jsonl {again}" in page.read_text()
