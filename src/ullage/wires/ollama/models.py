"""How the reasoning of models is bound that Ollama serves, and where they run."""

from __future__ import annotations

from ullage.wires.models import Family

FAMILIES = (Family("thinking in the open", ""),)
"""``thinking`` is plain text beside the content. Nothing is bound to it, and it may be left out."""


def is_hosted(model: str) -> bool:
    """Whether Ollama's own cloud runs a model, with the longest window that the model has.

    Source: docs.ollama.com, "Cloud" and "Context length".
    """
    return model.lower().endswith(("-cloud", ":cloud"))
