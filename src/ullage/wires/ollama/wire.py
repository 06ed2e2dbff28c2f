"""Ollama's own chat, as one object."""

from __future__ import annotations

from ullage.wires.ollama.format import Ollama
from ullage.wires.ollama.models import is_hosted
from ullage.wires.wire import Signs, Wire

WIRE = Wire(
    home=__name__,
    format=Ollama(),
    # without one of these a request is one of Chat Completions: a model's name shows neither
    signs=Signs(
        fields=("options", "keep_alive", "think"),
        message_fields=("tool_name", "thinking", "images"),
    ),
    provider="ollama",
    upstreams={
        "ollama": "https://ollama.com"
    },  # its cloud; a server of one's own has any address
    example_model="gpt-oss:120b-cloud",
    price_profile="ollama",
    summary_role="system",
    reply_field="message",
    is_billed=is_hosted,
    types_blocks=False,
)
