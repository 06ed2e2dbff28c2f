"""Metadata that say where the project lives: its URLs, and the README's links made absolute.

A package index shows the README apart from the repository, and relative links lead nowhere there.
The environment says where the repository is: ``ULLAGE_REPOSITORY=https://…``, which the release
workflow sets. Without it, in a build of a clone, there are no URLs, and the README is as it stands.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

LINK = re.compile(r"(!?)(\[[^\]]*\])\((?!https?:|mailto:|#)([^)\s]+)\)")


def absolute(text: str, repository: str, version: str) -> str:
    """A text whose relative links and images are those of the repository at this version."""

    def place(found: re.Match[str]) -> str:
        view = "raw" if found[1] else "blob"
        return (
            f"{found[1]}{found[2]}({repository}/{view}/v{version}/{found[3]})"
        )

    return LINK.sub(place, text)


class MetadataHook(MetadataHookInterface):
    """Sets ``readme`` and ``urls``."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Called by hatchling before it builds."""
        repository = os.environ.get("ULLAGE_REPOSITORY", "").rstrip("/")
        text = Path(self.root, "README.md").read_text(encoding="utf-8")
        if repository:
            text = absolute(text, repository, metadata["version"])
            metadata["urls"] = {
                "Homepage": repository,
                "Documentation": f"{repository}/blob/v{metadata['version']}/docs/index.md",
                "Changelog": f"{repository}/blob/v{metadata['version']}/CHANGELOG.md",
                "Issues": f"{repository}/issues",
                "Security": f"{repository}/security/policy",
            }
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
