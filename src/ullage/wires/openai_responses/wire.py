"""OpenAI Responses, as one object."""

from __future__ import annotations

from ullage.wires.openai_responses.format import OpenAIResponses
from ullage.wires.wire import Signs, Wire

WIRE = Wire(
    home=__name__,
    format=OpenAIResponses(),
    # logs of other wires have fields of these names beside their messages
    signs=Signs(
        fields=("input", "instructions", "max_output_tokens"),
        not_beside=("messages",),
    ),
    provider="openai",
    upstreams={
        "openai": "https://api.openai.com",
        "chatgpt": "https://chatgpt.com/backend-api/codex",  # Codex with a ChatGPT account
    },
    example_model="gpt-4.1",
    price_profile="openai-5",
    summary_role="system",
    reply_field="output",
)
