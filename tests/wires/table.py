"""The tables of `docs/formats.md`, from the examples that the tests are run on.

    python -m tests.wires.table

prints them as they are to stand there.
"""

import sys
from pathlib import Path

from tests.wire import examples
from ullage.wires import FORMATS

PAGE = Path(__file__).parents[2] / "docs" / "formats.md"
NAMES = {
    "anthropic": "Anthropic Messages",
    "openai-chat": "OpenAI Chat Completions",
    "openai-responses": "OpenAI Responses",
    "gemini": "Gemini generateContent",
    "ollama": "Ollama's own chat",
    "bedrock-converse": "Amazon Bedrock Converse",
}
_MEANT = {
    "Text": "text",
    "Media": "media",
    "Reasoning": "reasoning",
    "ToolCall": "a tool call",
    "ToolResult": "a tool result",
    "Opaque": "opaque",
    "Passage": "text in its block",
    "BlockFrame": "what its block keeps",
}
_WHO = {"tool": "a tool"}


def table(format):
    """What each type of a format is taken for, one row each."""
    rows = {}
    for example in examples(format):
        place = (
            "a tool's result"
            if example.inside
            else _WHO.get(example.role, f"the {example.role}")
        )
        note = f" ({example.note})" if example.note else ""
        key = (example.type, _MEANT[example.meaning] + note)
        places = rows.setdefault(key, [])
        if place not in places:
            places.append(place)
    listed = [
        f"| `{kind}` | {', '.join(places)} | {meant} |"
        for (kind, meant), places in rows.items()
    ]
    return "\n".join(
        [
            "| type | seen in | taken for |",
            "|---|---|---|",
            *sorted(set(listed)),
        ]
    )


def main():
    """Every table under the name of its format."""
    for format in FORMATS:
        sys.stdout.write(f"### {NAMES[format]}\n\n{table(format)}\n\n")


if __name__ == "__main__":
    main()
