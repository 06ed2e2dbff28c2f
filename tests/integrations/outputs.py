"""What tools answer in the tests of frameworks, and what a model finds in its prompt."""

import re

from ullage.session.recall.tools import recall_tools

(GREP,) = (
    tool.name
    for tool in recall_tools()
    if "pattern" in tool.parameters["properties"]
)
"""The default's tool that searches an output."""
LINES = 6_500
NEEDLE = "the needle is in the fourth drawer"


def big(n):
    """About 200 KB, of which no two calls give the same; one line says where the needle is."""
    lines = [
        f"{i}: drawer {i * 7919 % 9973} of cupboard {n}" for i in range(LINES)
    ]
    lines[LINES // 2] = f"{NEEDLE} of cupboard {n}"
    return "\n".join(lines)


def page(n):
    """About 4 KB."""
    return "\n".join(
        f"page {n}, line {i}: nothing of note, {i * n}" for i in range(100)
    )


def refs_in(text):
    """The refs that notices in a prompt name, in order, each once."""
    return list(
        dict.fromkeys(
            re.findall(
                r"(?:ref_id|tool_call_id|ref)=\W*([0-9a-z]{16})\b", text
            )
        )
    )


def story(name):
    """A tool of the user's own, which may have any name."""

    def tell(chapter: str) -> str:
        """Goes on with a story."""
        return f"And then, in {chapter}, it rained."

    tell.__name__ = name
    return tell


def names_in(text):
    """The names of the recall tools that notices in a prompt give, in order."""
    return re.findall(r"(\w+)\((?:ref_id|tool_call_id)=", text)
