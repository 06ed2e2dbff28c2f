"""Where ullage is installed from. Nothing else says it: messages ask here, and pages follow.

Nothing is published yet, so ullage is installed from a clone of its repository. No message, page or
image may name a package on an index before there is one: whoever publishes that name first would be
given the credentials of everybody who follows the advice.

``python -m lab.release`` switches this constant and every page that follows it.
"""

from __future__ import annotations

__all__ = ["PUBLISHED", "install_command", "install_remedy"]

PUBLISHED = False
"""Whether ``pip install ullage`` installs this project."""


def install_command(*extras: str) -> str:
    """The command that installs ullage.

    Args:
        extras: of ullage, such as ``"proxy"``.

    Returns:
        A line for a shell. Before the release it is for a clone's folder.
    """
    source = "ullage" if PUBLISHED else "."
    if extras:
        return f"pip install '{source}[{','.join(extras)}]'"
    return f"pip install {source}"


def install_remedy(*extras: str) -> str:
    """What to do where an extra is missing, as a part of a sentence.

    Args:
        extras: of ullage, such as ``"proxy"``.
    """
    command = install_command(*extras)
    return command if PUBLISHED else f"{command} in a clone of ullage"
