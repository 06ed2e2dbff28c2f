"""The order of first action: a run that needs room, a layer that is taken out, and the command."""

import json

import pytest
from click.testing import CliRunner
from msgspec.structs import replace

from lab.order import main, play
from tests import histories
from tests.histories import Call, Turn
from ullage.documents import preset
from ullage.tools.replay.readers import read

OUTPUT = "".join(f"{number}: what there is to see\n" for number in range(900))
TURNS = [
    Turn(said=" thought" * 1_500, calls=(Call("bash", f"{n}", OUTPUT),))
    for n in range(30)
]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    path = tmp_path_factory.mktemp("runs") / "run.json"
    path.write_text(
        json.dumps(
            histories.request(
                "openai-chat", histories.wire("openai-chat", TURNS)
            )
        )
    )
    return path


@pytest.mark.parametrize("name", ["three_layer", "output_cache"])
def test_the_layers_of_a_document_act_before_the_guard(recorded, name):
    (run,) = read(recorded)
    found = play(run, preset(name), 64_000)
    assert found.order[:2] == ("prune", "compact")
    assert found.asked
    assert found.fits
    without = play(run, replace(preset(name), under_pressure=()), 64_000)
    assert without.order == ("guard",)
    assert not without.asked


def test_the_command_prints_the_order_and_leaves_out_what_needs_no_room(
    recorded,
):
    said = CliRunner().invoke(
        main, [str(recorded), "--window", "64000", "--window", "900000"]
    )
    assert said.exit_code == 0
    assert (
        "three_layer, 64,000: 1 runs; the summariser was asked in 1"
        in said.output
    )
    assert "     1  prune, compact\n" in said.output
    assert "three_layer, 900,000: 0 runs" in said.output
