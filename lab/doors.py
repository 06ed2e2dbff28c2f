"""Every door as a new user comes to it: an environment of its own, the wheel, one of the examples.

    python -m lab.doors                  (make doors; OPTIONS="mcp_client" for some of them)

Each installs the wheel of this tree with what its example needs, then runs the example against a
scripted provider: the model reads a file of 420,000 characters and is done. Printed are the
seconds, the packages that came along (pip not counted) and the bytes of each request. Exit status 1
if one fails.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import nullcontext
from pathlib import Path
from typing import Any, NamedTuple

from lab.packages import NOT_COUNTED, ROOT, built, run
from tests.servers import Call, Reply, provider

LOG = "INFO the tide came in\n" * 20_000
REPLIES = [
    Reply("I look.", [Call("read_file", {"path": "app.log"})]),
    "It is done.",
]
KEYS = ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY")


class Door(NamedTuple):
    """What one example needs.

    Attributes:
        packages: beside ullage.
        wire: that its provider speaks; "" where it has none.
        extra: of ullage.
        under: the command that it is run by, if there is one.
        words: that it is run with.
    """

    packages: tuple[str, ...]
    wire: str
    extra: str = ""
    under: tuple[str, ...] = ()
    words: tuple[str, ...] = ("What is wrong in app.log?",)


DOORS = {
    "loop_anthropic": Door(("anthropic",), "anthropic"),
    "loop_openai": Door(("openai",), "openai-chat"),
    "loop_responses": Door(("openai",), "openai-responses"),
    "loop_gemini": Door(("google-genai",), "gemini"),
    "wrapped_client": Door(("openai",), "openai-responses"),
    "coding_agent": Door(
        ("anthropic",), "anthropic", "[proxy]", ("ullage", "run", "--")
    ),
    "langgraph_agent": Door(
        ("langchain-anthropic", "langgraph-checkpoint-sqlite"),
        "anthropic",
        "[langchain]",
        words=("incident-7", "What is wrong in app.log?"),
    ),
    "mcp_client": Door(("mcp",), "", "[mcp]", words=()),
}


def tried(name: str, wheel: Path, folder: Path) -> str:
    """One door; what came of it, in a line. Raises CalledProcessError with what failed."""
    door, start_s = DOORS[name], time.monotonic()
    run(sys.executable, "-m", "venv", folder / "venv")
    programs = folder / "venv" / "bin"
    pip = (programs / "python", "-m", "pip", "--disable-pip-version-check")
    run(*pip, "install", "--quiet", f"{wheel}{door.extra}", *door.packages)
    installed_s = time.monotonic() - start_s
    listed = {
        line.split("==")[0]
        for line in run(*pip, "list", "--format=freeze").splitlines()
    }
    shutil.copytree(ROOT / "examples", folder / "examples")
    (folder / "app.log").write_text(LOG)
    serving: Any = provider(door.wire, REPLIES) if door.wire else nullcontext()
    with serving as server:
        start_s = time.monotonic()
        program = ("python", "-m", f"examples.{name}", *door.words)
        said = subprocess.run(
            [*door.under, *program],
            cwd=folder,
            env=_environment(folder, programs, server.url if server else ""),
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        ran_s = time.monotonic() - start_s
        sent = (
            [len(request.raw) for request in server.requests]
            if server
            else [len(said)]
        )
    least = len(LOG) // 4
    if max(sent) > least or (server and "It is done." not in said):
        raise ValueError(
            f"{name}: {sent} bytes were sent; it said {said[-200:]!r}"
        )
    sizes = " and ".join(f"{size:,}" for size in sent)
    return (
        f"{name:16} {installed_s:5.1f} s to install {len(listed - NOT_COUNTED):2} packages, "
        f"{ran_s:4.1f} s to answer; {sizes} bytes"
    )


def _environment(folder: Path, programs: Path, url: str) -> dict[str, str]:
    """A bare one, with the URLs of a provider as its SDK reads them."""
    urls = {
        "ANTHROPIC_BASE_URL": url,
        "OPENAI_BASE_URL": f"{url}/v1",
        "GOOGLE_GEMINI_BASE_URL": url,
    }
    keys = dict.fromkeys(KEYS, "none")
    return (
        {"PATH": f"{programs}:/usr/bin:/bin", "HOME": str(folder)}
        | keys
        | (urls if url else {})
    )


def main(names: list[str]) -> int:
    """Try them one after the other; the exit status."""
    status = 0
    with tempfile.TemporaryDirectory() as root:
        wheel, _ = built(Path(root))
        for name in names or DOORS:
            try:
                print(tried(name, wheel, Path(root, name)), flush=True)
            except subprocess.CalledProcessError as error:
                status = 1
                print(
                    f"{name:16} failed: {error.cmd}\n{error.stderr[-1_000:]}",
                    flush=True,
                )
            except ValueError as error:
                status = 1
                print(error, flush=True)
    return status


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
