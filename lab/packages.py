"""What users install, tried in fresh environments: the wheel and the sdist, on each Python given.

    python -m lab.packages python3.11 python3.12     (make packages)

For each: how many packages come with it, and whether a program, the command and a store that an
earlier version left behind work with nothing else installed. Packages come as wheels alone; the
sdist is built by pip itself. Where uv is there, it is asked besides whether all of them have wheels
elsewhere: on the other Pythons, musl, macOS and Windows. Exit status 1 if one fails.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
MINORS = (11, 12, 13, 14)
PLATFORMS = (
    *(
        "x86_64-manylinux_2_28",
        "aarch64-manylinux_2_28",
        "x86_64-unknown-linux-musl",
    ),
    *(
        "aarch64-unknown-linux-musl",
        "aarch64-apple-darwin",
        "x86_64-apple-darwin",
    ),
    "x86_64-pc-windows-msvc",
)
NOT_COUNTED = {"pip", "setuptools", "wheel"}
PROGRAM = """
import json, pathlib, shutil, sys
import ullage
left = pathlib.Path(sys.argv[1])
store = shutil.copy(left / "kept.db", "kept.db")
session = ullage.Session(
    "gpt-4.1", limits=ullage.Limits(window_tokens=12_000), store=store, tenant="ada"
)
history = json.loads((left / "history.json").read_text())
view = session.fit({"model": "gpt-4.1", "messages": history})
was = json.loads((left / "view.json").read_text())
assert view["messages"][1] == was[1], "another record"
session.close()
"""


def run(*command: str | Path, folder: Path | None = None) -> str:
    """Run a command; gives what it prints. Raises CalledProcessError."""
    done = subprocess.run(
        [str(word) for word in command],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def built(folder: Path) -> tuple[Path, Path]:
    """The wheel and the sdist."""
    run(
        sys.executable,
        "-m",
        "hatchling",
        "build",
        "--directory",
        folder,
        folder=ROOT,
    )
    (wheel,), (sdist,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    return wheel, sdist


def tried(python: str, package: Path, folder: Path) -> str:
    """One package in an environment of its own; what came of it, in a line."""
    run(python, "-m", "venv", folder / "env")
    inside = folder / "env" / "bin" / "python"
    only = (
        ["--only-binary", ":all:"]
        if package.suffix == ".whl"
        else ["--prefer-binary"]
    )
    run(
        inside,
        "-m",
        "pip",
        "install",
        "--quiet",
        *only,
        package,
        folder=folder,
    )
    listed = json.loads(run(inside, "-m", "pip", "list", "--format", "json"))
    names = {each["name"] for each in listed} - NOT_COUNTED
    (left,) = sorted((ROOT / "tests" / "compat").glob("*/kept.db"))[-1:]
    run(inside, "-I", "-c", PROGRAM, left.parent, folder=folder)
    version = run(
        inside, "-I", "-m", "ullage", "--version", folder=folder
    ).strip()
    return f"{len(names)} packages, {version}, a store of {left.parent.name} opens"


def lacking(minor: int, platform: str) -> str:
    """What has no wheel for a Python on a platform, as uv says it; "" if all have one."""
    asked = ["--python-version", f"3.{minor}", "--python-platform", platform]
    command = [
        "uv",
        "pip",
        "compile",
        "--quiet",
        "--only-binary",
        ":all:",
        *asked,
    ]
    done = subprocess.run(
        [*command, ROOT / "pyproject.toml"],
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stderr.strip() if done.returncode else ""


def wheels_everywhere() -> int:
    """Ask for every Python and platform; exit status."""
    if shutil.which("uv") is None:
        print("wheels of other platforms were not looked for: uv is not here")
        return 0
    status = 0
    for minor in MINORS:
        without = {
            each: said for each in PLATFORMS if (said := lacking(minor, each))
        }
        print(
            f"3.{minor:<6} wheels for {len(PLATFORMS) - len(without)} of {len(PLATFORMS)} platforms"
        )
        for platform, said in without.items():
            status = 1
            print(f"  {platform}: {said}")
    return status


def main(pythons: list[str]) -> int:
    """Try each; see the module."""
    status = 0
    with tempfile.TemporaryDirectory(prefix="ullage-packages-") as name:
        packages = built(Path(name) / "dist")
        for python in pythons:
            version = run(
                python,
                "-c",
                "import platform; print(platform.python_version())",
            ).strip()
            for package in packages:
                kind = "wheel" if package.suffix == ".whl" else "sdist"
                with tempfile.TemporaryDirectory(dir=name) as folder:
                    try:
                        said = tried(python, package, Path(folder))
                    except subprocess.CalledProcessError as error:
                        status, said = 1, f"failed: {error.stderr[-600:]}"
                print(f"{version:8} {kind}  {said}", flush=True)
    return max(status, wheels_everywhere())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or [sys.executable]))
