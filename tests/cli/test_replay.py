"""`ullage replay` on small recordings written here: gzip or plain, misnamed, damaged."""

import gzip
import json
import sys

import duckdb
import pytest
from msgspec import structs

from tests.cli.terminal import conversation, told, ullage
from tests.replay.evidence.conversation import errand
from tests.replay.test_run import small_run
from ullage.tools.cli import main, replay
from ullage.tools.replay.cost.prices import PROFILES
from ullage.tools.replay.policies import key_of
from ullage.tools.replay.run import replay_run


def trajectory(name, steps, lines=450):
    """A run of the recorder's own kind: ``steps`` calls with long outputs."""
    messages = [{"role": "user", "content": "Mend the build."}]
    for step in range(steps):
        id = f"call_{step}"
        call = {
            "name": "bash",
            "arguments": json.dumps({"command": f"make {step}"}),
        }
        output = "".join(
            f"{step} {line} the tide came in\n" for line in range(lines)
        )
        messages += [
            {
                "role": "assistant",
                "tool_calls": [
                    {"id": id, "type": "function", "function": call}
                ],
            },
            {"role": "tool", "tool_call_id": id, "content": output},
        ]
    messages.append({"role": "assistant", "content": "It is mended."})
    return {
        "id": name,
        "format": "openai-chat",
        "model": "gpt-4.1",
        "messages": messages,
    }


def lines_of(*values):
    return "".join(json.dumps(value) + "\n" for value in values).encode()


@pytest.fixture(scope="module")
def recordings(tmp_path_factory):
    """A folder of three readable files and one that is none."""
    folder = tmp_path_factory.mktemp("recordings")
    (folder / "b").mkdir()
    packed = gzip.compress(
        lines_of(trajectory("one", 8), trajectory("two", 3))
    )
    (folder / "a.jsonl.gz").write_bytes(packed)
    damaged = (
        b'{"half": \n'
        + lines_of(trajectory("three", 2))
        + b"\xff\xfe\x00\n7\n"
    )
    (folder / "b" / "damaged.jsonl").write_bytes(damaged)
    request = conversation("all is well") | {
        "response": {
            "choices": [{"message": {"role": "assistant", "content": "Fine."}}]
        }
    }
    misnamed = json.dumps(request, indent=1).encode()
    (folder / "b" / "misnamed.txt").write_bytes(gzip.compress(misnamed))
    (folder / "notes.md").write_text("# Nothing to replay\n")
    return folder


@pytest.fixture(scope="module")
def as_json(recordings):
    return ullage(
        "replay", recordings, "--window", 16_000, "--json", "--jobs", 1
    )


def row(ran, name):
    return next(row for row in ran.json["rows"] if row["name"] == name)


def test_a_folder_is_replayed_file_by_file_and_summed_up(as_json):
    assert (
        as_json.status == 3
    )  # damaged.jsonl has lost lines; notes.md is no recording
    names = [row["name"] for row in as_json.json["rows"]]
    assert names == ["a.jsonl.gz", "damaged.jsonl", "misnamed.txt", "all"]
    every = row(as_json, "all")
    assert (every["runs"], every["calls"]) == (4, 9 + 4 + 3 + 2)
    assert all(row["window_tokens"] == 16_000 for row in as_json.json["rows"])


def test_what_a_policy_would_have_done_is_counted(as_json):
    packed = row(as_json, "a.jsonl.gz")
    assert packed["over_window"] == 1
    assert packed["peak_tokens"] < 16_000 < packed["raw_peak_tokens"]
    assert packed["events"]["truncated"] == 11
    assert packed["tokens"] < packed["raw_tokens"]
    assert packed["broken"] == {}
    assert packed["over_limit"] == 0
    first = packed["charges"][0]
    assert (first["profile"], first["models"]) == ("own", ["gpt-4.1"])
    assert 0 < packed["charges"][0]["usd_share"] < 1


def test_what_cannot_be_read_is_told_and_skipped(as_json):
    skipped = [
        (damage["file"], damage["line"]) for damage in as_json.json["skipped"]
    ]
    assert {file for file, _ in skipped} == {"damaged.jsonl", "notes.md"}
    assert {line for file, line in skipped if file == "damaged.jsonl"} == {
        1,
        3,
        4,
    }
    assert "skipped damaged.jsonl line 1" in as_json.err
    assert "half" not in as_json.err


def test_the_table_is_for_people(recordings, tmp_path):
    plain = tmp_path / "plain.jsonl"
    plain.write_bytes(
        gzip.decompress((recordings / "a.jsonl.gz").read_bytes())
    )
    windows = ("--window", 16_000, "--window", 64_000)
    ran = ullage(
        "replay",
        plain,
        *windows,
        "--runs",
        "--jobs",
        1,
        env={"COLUMNS": "120"},
    )
    assert ran.status == 0
    table = [line.split() for line in ran.text.splitlines()]
    rows = [
        (line[0], line[2])
        for line in table
        if line[1:2] == ["default"] and "kept" in line
    ]
    assert rows == [
        *(("one", "16k"), ("one", "64k"), ("two", "16k"), ("two", "64k")),
        *(("all", "16k"), ("all", "64k")),
    ]
    assert "…" not in ran.text
    assert max(map(len, ran.text.splitlines())) <= 120
    assert "prices of own: gpt-4.1" in ran.text


def test_it_opens_with_what_came_of_it_in_words_and_prints_the_runs_own_prices(
    recordings,
):
    words = (
        "replay",
        recordings / "a.jsonl.gz",
        "--window",
        16_000,
        "--most",
        1,
        "--jobs",
        1,
    )
    ran = ullage(*words)
    first = ran.text.splitlines()[0]
    assert first.startswith("default · 16k: 1 run, ")
    assert " tokens sent instead of " in first
    assert ". The whole bill, answers included: $0." in first
    assert "% less. " in first
    assert "own: gpt-4.1" in ran.text
    assert "deepseek" not in ran.text, "it is asked for with --cache"
    priced = ullage(*words, "--cache", "own", "--cache", "deepseek")
    assert "deepseek" in priced.text


def test_a_window_is_typed_as_people_write_it(recordings):
    words = ("--window", "16k", "--window", "own", "--window", "16 thousand")
    ran = ullage("replay", recordings / "a.jsonl.gz", *words, "--jobs", 1)
    assert ran.status == 2
    assert (
        "'16 thousand' is no number of tokens: write 64000, 64k or 1M."
        in ran.err
    )
    ran = ullage(
        "replay", recordings / "a.jsonl.gz", *words[:4], "--jobs", 1, "--json"
    )
    rooms = [(row["window_tokens"], row["is_own"]) for row in ran.json["rows"]]
    assert rooms == [(16_000, False), (1_000_000, True)]


def test_without_a_window_each_run_has_that_of_its_model(recordings):
    ran = ullage("replay", recordings / "a.jsonl.gz", "--jobs", 1)
    assert ran.text.startswith("default · the model's own window: 2 runs, ")
    assert "nothing was saved" not in ran.text.splitlines()[0]


@pytest.mark.parametrize("width", [60, 80, 120])
def test_a_table_is_as_wide_as_the_terminal_and_no_figure_is_cut(
    recordings, width
):
    words = ("--window", 16_000, "--most", 1, "--least", 8, "--jobs", 1)
    ran = ullage(
        "replay",
        recordings / "a.jsonl.gz",
        *words,
        env={"COLUMNS": str(width)},
    )
    lines = ran.text.splitlines()
    assert max(map(len, lines)) <= width
    assert "…" not in ran.text
    row = next(line for line in lines if line.startswith(" a.jsonl.gz "))
    assert row.rstrip().endswith("kept")
    assert ("not shown at this width: p99" in ran.text) == (width < 120)


MINE = """
from ullage.policy import Policy

def keep():
    return Policy(name="keeps-all")
"""


def test_a_policy_of_ones_own_is_tried_as_module_and_name(
    recordings, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(MINE)
    words = ("replay", recordings / "a.jsonl.gz", "--jobs", 1)
    ran = ullage(*words, "--policy", "mine:keep", "--json")
    (row,) = ran.json["rows"]
    assert row["policy"] == "mine:keep"
    assert row["tokens"] == row["raw_tokens"]
    mistyped = ullage(*words, "--policy", "defalt")
    assert "Did you mean 'default'?" in told(mistyped)


def test_results_of_an_own_policy_are_kept_until_it_is_changed(
    recordings, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "ours", raising=False)
    (tmp_path / "ours.py").write_text(MINE)
    key = key_of("ours:keep")
    key_of.cache_clear()
    assert key_of("ours:keep") == key
    monkeypatch.delitem(sys.modules, "ours")
    key_of.cache_clear()
    (tmp_path / "ours.py").write_text(
        "from ullage.policy import Policy\n"
        "def cut(window):\n    return []\n"
        "keep = Policy(name='keeps-all', on_arrival=(cut,))\n"
    )
    assert key_of("ours:keep") != key


def test_calls_that_no_view_could_fit_have_a_status_of_their_own(recordings):
    ran = ullage(
        "replay",
        recordings / "a.jsonl.gz",
        "--window",
        100,
        "--most",
        1,
        "--jobs",
        1,
    )
    assert "over limit" in ran.text
    assert ran.status == 3


def test_short_runs_can_be_left_out_and_many_be_cut(recordings):
    ran = ullage(
        "replay", recordings, "--least", 8, "--most", 1, "--json", "--jobs", 1
    )
    assert [
        (row["name"], row["runs"], row["calls"]) for row in ran.json["rows"]
    ] == [("a.jsonl.gz", 1, 9)]


def test_a_broken_gate_is_a_status_of_its_own(recordings, monkeypatch, capsys):
    sound = replay_run(
        small_run("openai-chat", 2), 16_000, profiles=[PROFILES["none"]]
    )
    broken = structs.replace(sound, broken={"G4": 2})
    monkeypatch.setattr(
        replay, "replay_all", lambda *_: iter([("a.jsonl.gz", broken, 1)])
    )
    with pytest.raises(SystemExit) as ended:
        main(["replay", str(recordings)])
    assert ended.value.code == 1
    assert "G4" in capsys.readouterr().out


def test_a_path_that_is_not_there_is_told_in_one_line(tmp_path):
    ran = ullage("replay", tmp_path / "nothing.jsonl")
    assert ran.status == 2
    assert "does not exist" in told(ran)


def test_nothing_but_damage_is_no_table_and_no_success(tmp_path):
    (tmp_path / "notes.md").write_text("# Nothing to replay\n")
    ran = ullage("replay", tmp_path)
    assert ran.status == 1
    assert ran.out == b""
    assert ran.err.endswith(
        "Error: the paths: no recorded run was found in them. "
        "Give trajectories, provider requests or session logs, or a lower --least.\n"
    )


def test_recordings_are_only_read(as_json, recordings):
    assert sorted(
        file.name for file in recordings.rglob("*") if file.is_file()
    ) == [*("a.jsonl.gz", "damaged.jsonl", "misnamed.txt", "notes.md")]


def test_a_page_is_written_for_its_owner_alone_and_draws_the_largest_runs(
    recordings, tmp_path
):
    page = tmp_path / "report.html"
    words = (
        "--window",
        16_000,
        "--html",
        page,
        "--draw",
        1,
        "--jobs",
        1,
        "--json",
    )
    ran = ullage("replay", recordings / "a.jsonl.gz", *words)
    assert ran.status == 0
    assert page.stat().st_mode & 0o077 == 0
    text = page.read_text()
    assert text.count('type="text/plain"') == 2, (
        "one run: its story and its turns"
    )
    assert "1 of 2 runs are drawn" in text
    assert "--window 16000" in text, (
        "the command that prints the figures again"
    )


def test_a_page_that_cannot_be_written_is_told(recordings, tmp_path):
    page = tmp_path / "nowhere" / "report.html"
    ran = ullage(
        "replay",
        recordings / "a.jsonl.gz",
        "--most",
        1,
        "--html",
        page,
        "--jobs",
        1,
    )
    assert ran.status == 1
    assert "the file cannot be written" in ran.err


def test_prices_can_be_chosen_and_given_as_a_file(recordings, tmp_path):
    own = tmp_path / "own.toml"
    own.write_text(
        'name="own"\nwrite=1.0\nread=0.5\nmin_tokens=0\nas_of="2026-11-21"\nsource="ours"\n'
    )
    words = (
        "--most",
        1,
        "--jobs",
        1,
        "--json",
        "--cache",
        own,
        "--cache",
        "deepseek",
    )
    ran = ullage("replay", recordings / "a.jsonl.gz", *words)
    (row,) = ran.json["rows"]
    charges = {(c["profile"], c["clock"]): c for c in row["charges"]}
    assert set(charges) == {
        (n, c) for n in ("own", "deepseek") for c in ("warm", "lossy")
    }
    assert charges["own", "warm"]["usd_share"] is None, "it gives no price"
    assert charges["deepseek", "warm"]["usd_share"] > 0
    assert "there is no price profile" in told(
        ullage("replay", recordings, "--cache", "ether")
    )


def errands(folder, count=4):
    """Errands of several tasks, each in need of what it read before."""
    path = folder / "errands.jsonl"
    runs = [errand(seed, turns=12) for seed in range(count)]
    lines = [{"id": f"errand {n}", "format": run.format, "messages": run.messages, "task": f"{n}"}
             for n, run in enumerate(runs)]  # fmt: skip
    path.write_bytes(lines_of(*lines))
    return path


def test_a_budget_is_a_share_of_each_run(tmp_path):
    asked = ("--budget", "30%", "--budget", "0.5", "--jobs", 1, "--json")
    ran = ullage("replay", errands(tmp_path, 2), *asked)
    assert [row["share"] for row in ran.json["rows"]] == [0.3, 0.5]


@pytest.mark.parametrize("share", ["0%", "80%", "half"])
def test_a_budget_that_cannot_be_meant_is_told(tmp_path, share):
    ran = ullage("replay", errands(tmp_path), "--budget", share)
    assert ran.status == 2
    assert share in told(ran)


def test_the_page_tells_the_command_that_prints_its_figures_again(tmp_path):
    page = tmp_path / "report.html"
    asked = ("--budget", "30%", "--jobs", 1)
    ran = ullage(
        "replay", errands(tmp_path), *asked, "--html", page, "--draw", 0
    )
    assert ran.status == 0
    assert "--budget 0.3 --jobs 1 --html report.html" in page.read_text()
    assert "--window" not in page.read_text()


def test_the_same_logs_from_an_object_store_are_the_same_rows(
    recordings, as_json
):
    words = ("--window", 16_000, "--json", "--jobs", 1)
    ran = ullage("replay", recordings.as_uri(), *words)
    times = {"fit_ms_median", "fit_ms_p99"}

    def bare(rows):
        return [
            {k: v for k, v in row.items() if k not in times} for row in rows
        ]

    assert bare(ran.json["rows"]) == bare(as_json.json["rows"])
    assert ran.json["skipped"] == as_json.json["skipped"]


def test_one_object_is_read_by_its_address(recordings):
    ran = ullage(
        "replay", f"{recordings.as_uri()}/a.jsonl.gz", "--json", "--jobs", 1
    )
    assert ran.json["rows"][-1]["runs"] == 2


def test_an_object_store_that_is_not_known_is_told_of_without_its_address():
    text = told(ullage("replay", "ftp://secret.example/logs"))
    assert "secret" not in text
    assert "cannot be listed" in text


def test_a_replay_that_was_stopped_goes_on_where_it_was_and_writes_what_was_kept(
    tmp_path,
):
    kept, out, path = (
        tmp_path / "kept",
        tmp_path / "out.parquet",
        errands(tmp_path, 3),
    )
    words = (
        "--budget",
        "30%",
        "--cache",
        "none",
        "--resume",
        kept,
        "--json",
        "--jobs",
    )
    first = ullage("replay", path, *words, 1)
    lines = kept.read_bytes().splitlines(keepends=True)
    kept.write_bytes(
        lines[0] + lines[1][:50]
    )  # as a process that was killed leaves it
    again = ullage("replay", path, *words, 2, "--out", out)
    times = {"fit_ms_median", "fit_ms_p99"}
    for row, other in zip(first.json["rows"], again.json["rows"], strict=True):
        assert {k: row[k] for k in row.keys() - times} == {
            k: other[k] for k in row.keys() - times
        }
    assert kept.read_bytes().count(b"\n") == 4, "of which one is cut short"
    with duckdb.connect() as db:
        found = db.execute(
            "SELECT run FROM read_parquet(?) ORDER BY run", [str(out)]
        ).fetchall()
    assert found == [("errand 0",), ("errand 1",), ("errand 2",)]


def test_both_passes_over_the_logs_tell_how_far_they_are(
    tmp_path, monkeypatch
):
    monkeypatch.setenv("FORCE_COLOR", "1")  # as on a terminal
    ran = ullage(
        "replay", errands(tmp_path, 2), "--budget", "30%", "--jobs", 1
    )
    assert ran.status == 0
    assert "reading" in ran.err
    assert "2 runs" in ran.err
    assert "replaying" in ran.err
    assert "2 replays" in ran.err
