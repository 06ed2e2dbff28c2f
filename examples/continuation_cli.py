"""Ask about a meeting on the command line.

    OPENAI_BASE_URL=… OPENAI_API_KEY=… python -m examples.continuation_cli \
        "Which decisions were made in meeting.wav?"

The endpoint is any that speaks OpenAI's Chat Completions.
"""

from __future__ import annotations

import argparse
import sys

import openai

from examples.continuation import MEETING_SERVER, agent_turn, new_session
from ullage.integrations.mcp_tools import mcp_tools


def main() -> int:
    """Read questions, from the arguments or one a line, and print the answers."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "question", nargs="*", help="none: one question a line is read"
    )
    parser.add_argument("--model", default="gpt-4.1")
    parser.add_argument(
        "--store", default="sqlite", help="where long results are kept"
    )
    given = parser.parse_args()
    messages: list[object] = []
    create = openai.OpenAI().chat.completions.create
    with (
        mcp_tools(MEETING_SERVER) as tools,
        new_session(given.model, given.store) as session,
    ):
        for question in given.question or map(str.strip, sys.stdin):
            outcome = agent_turn(create, session, tools, messages, question)
            print(outcome.text)
            print(
                f"[{outcome.why}; {outcome.iterations} calls of the model, and "
                f"{outcome.uncounted} to read on; {outcome.usage.total_tokens:,} tokens]",
                file=sys.stderr,
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
