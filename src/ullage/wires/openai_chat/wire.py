"""OpenAI Chat Completions, as one object."""

from __future__ import annotations

from ullage.wires.openai_chat.format import OpenAIChat
from ullage.wires.wire import Signs, Wire

WIRE = Wire(
    home=__name__,
    format=OpenAIChat(),
    signs=Signs(
        tool_fields=("function",),
        roles=("tool", "developer"),
        message_fields=("tool_calls",),
        models=r"^(?:gpt|o1|o3|o4|chatgpt|codex|deepseek|qwen|grok)",
    ),
    provider="openai",
    upstreams={"openai": "https://api.openai.com"},
    example_model="gpt-4.1",
    price_profile="openai-5",
    summary_role="system",
    reply_field="choices",
    # proxies put fields of their own into a reply's message, which no request takes
    reply_message_fields=(
        "role",
        "content",
        "refusal",
        "tool_calls",
        "function_call",
        "audio",
    ),
)
