"""An environment for each peer, made once from its pinned and hashed requirements.

Peers want different versions of the same libraries, and none of theirs may be ours.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path

from lab.bench.peers.process import Trouble


def python_of(name: str, requirements: Path, root: Path) -> Path:
    """The interpreter of a peer's environment, which is made if it is not there.

    Our own pip installs, so that an environment holds nothing but what its peer needs.

    Args:
        name: of the peer.
        requirements: every distribution pinned, with its hashes; others make another environment.
        root: the folder of all environments.

    Raises:
        Trouble: it cannot be installed, with the last thing that pip said of it.
    """
    pins = hashlib.blake2b(
        requirements.read_bytes(), digest_size=4
    ).hexdigest()
    folder = root / f"{name}-{pins}"
    python, ready = folder / "bin" / "python", folder / "ready"
    if not ready.exists():
        print(
            f"setting up the environment of {name} (once) …",
            file=sys.stderr,
            flush=True,
        )
        _run(
            [
                sys.executable,
                "-m",
                "venv",
                "--clear",
                "--without-pip",
                str(folder),
            ]
        )
        pip = [sys.executable, "-m", "pip", "--python", str(python), "install"]
        quiet = ["--quiet", "--disable-pip-version-check", "--no-input"]
        _run(
            [
                *pip,
                *quiet,
                "--no-deps",
                "--require-hashes",
                "-r",
                str(requirements),
            ]
        )
        ready.touch()
    return python


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        said = (
            line
            for line in done.stderr.splitlines()
            if line.startswith("ERROR")
        )
        raise Trouble(
            f"cannot be installed: {next(said, 'no reason given')[:160]}"
        )
