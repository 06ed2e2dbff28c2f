"""Amazon Bedrock Converse, as one object."""

from __future__ import annotations

from ullage.wires.bedrock_converse.format import BedrockConverse
from ullage.wires.wire import Signs, Wire

WIRE = Wire(
    home=__name__,
    format=BedrockConverse(),
    signs=Signs(
        fields=("modelId", "inferenceConfig", "additionalModelRequestFields"),
        bare_blocks=(
            "text",
            "toolUse",
            "toolResult",
            "reasoningContent",
            "image",
            "document",
        ),
    ),
    provider="aws.bedrock",
    upstreams={"bedrock": "https://bedrock-runtime.us-east-1.amazonaws.com"},
    example_model="anthropic.claude-sonnet-4-5-20250929-v1:0",
    price_profile="anthropic-5m",
    summary_role="user",  # its system messages add and remove tools
    reply_field="output",
    types_blocks=False,
)
