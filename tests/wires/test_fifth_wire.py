"""A fifth wire is a folder and a line: a copy of the package gets one, and every room has it.

The folder is Anthropic's under another name, with paths and signs of its own. Nothing else of the
copy is changed but the tuple of wires.
"""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import ullage

SRC = Path(ullage.__file__).parent
RENAMED = {
    "ullage.wires.anthropic": "ullage.wires.telex",
    '"anthropic"': '"telex"',
    '        fields=("system",),\n': "",
    '        tool_fields=("input_schema",),\n': "",
    'models="claude"': 'models="telex"',
    "/v1/messages": "/v1/telex",
    "/publishers/anthropic/": "/publishers/telex/",
    "/models/count-tokens": "/models/telex-tokens",
    "/model/(?P": "/telexes/(?P",
}
USED = """
from ullage import Limits, Session, problems
from ullage.doors.exchange import route_of
from ullage.doors.exchange.replies import error_of, is_error, is_opening
from ullage.doors.proxy.config import UPSTREAMS
from ullage.tools.replay.calls import model_of
from ullage.tools.replay.cost.prices import own_profile
from ullage.tools.replay.reading import ask
from ullage.tools.replay.readers._run import Run
from ullage.testing import example_runs, in_format
from ullage.core.values.toolset import CONTINUATION
from ullage.wires import recognise, wire_named
from ullage.wires.convert import convert

(run,) = example_runs(1)
request = in_format(run, "telex")
hello = {"model": "telex-9", "messages": [{"role": "user", "content": "hi"}]}
assert recognise(hello).name == "telex"
assert problems(request, format="telex") == []
assert convert(convert(request, "gemini", format="telex"), "telex")["messages"]

broken = {**request, "messages": request["messages"][:2]}
assert problems(broken, format="telex")
session = Session(
    "telex-9", format="telex", recall=True, limits=Limits(window_tokens=8_000), repair=True
)
view = session.fit(request)
assert problems(view, format="telex") == []
assert session.window.tokens < 8_000
tool = session.window.words.prefix + CONTINUATION
assert "no_such_ref" in ask(session, tool, {"tool_call_id": "no_such_ref", "offset": 0})

route = route_of("POST", "/v1/telex/count_tokens")
assert (route.wire, route.kind) == ("telex", "count")
assert is_error("telex", error_of("telex", 500, "no"))
assert is_opening("telex", {"type": "message_start"})
assert wire_named("telex").dialect(wire_named("telex").format, bool).calls_stop == "tool_use"
assert "telex" in UPSTREAMS
assert own_profile("telex-9", "telex").read
assert model_of(Run("x", "telex", {}, [])) == "claude-sonnet-4-5"
"""


@pytest.fixture
def package(tmp_path):
    """A copy of the package with one wire more."""
    copy = tmp_path / "ullage"
    shutil.copytree(SRC, copy, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(copy / "wires" / "anthropic", copy / "wires" / "telex")
    for file in (copy / "wires" / "telex").glob("*.py"):
        text = file.read_text(encoding="utf-8")
        for old, new in RENAMED.items():
            text = text.replace(old, new)
        file.write_text(text, encoding="utf-8")
    rooms = copy / "wires" / "__init__.py"
    text = rooms.read_text(encoding="utf-8")
    line = "from ullage.wires.wire import Wire\n"
    text = text.replace(
        line, f"from ullage.wires.telex.wire import WIRE as TELEX\n{line}"
    )
    rooms.write_text(
        text.replace("    GEMINI,\n", "    GEMINI,\n    TELEX,\n"),
        encoding="utf-8",
    )
    return tmp_path


def test_every_room_has_it(package):
    done = subprocess.run(
        [sys.executable, "-c", USED],
        env={"PYTHONPATH": str(package)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
