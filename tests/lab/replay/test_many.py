"""Presets, the frame and full service, replayed alike."""

from lab.replay.many import SERVED, TRIED
from tests.replay.test_run import small_run
from ullage.tools.replay.cost.prices import PROFILES
from ullage.tools.replay.engines import LocalEngine
from ullage.tools.replay.many import Job, ResultFile, replay_all


def test_full_service_is_kept_with_the_rest_and_is_not_taken_for_a_replay_without(
    tmp_path,
):
    path, run = tmp_path / "kept", small_run("openai-chat", 2)
    found = []
    for replayer in (SERVED, SERVED, TRIED):
        job = Job((PROFILES["none"], PROFILES["openai-5"]))
        kept = ResultFile(path, replayer.outcome)
        wanted = iter([("file", run, 0)])
        ((_, outcome, _),) = replay_all(
            wanted, (("default", 0.5),), job, LocalEngine(), kept, replayer
        )
        found.append(outcome)
    assert found[0].served is not None
    assert found[0] == found[1], "the second is what was kept, its times too"
    assert found[0].share == found[2].share == 0.5
    assert found[2].served is None
    assert len(path.read_bytes().splitlines()) == 2
