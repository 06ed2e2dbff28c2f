"""An agent of Google ADK that stays within its window: one line of it is ullage's.

python -m examples.adk_agent "What is wrong in app.log?"
"""

from __future__ import annotations

import asyncio
import sys

from google.adk.agents import Agent
from google.adk.apps import App
from google.adk.runners import InMemoryRunner
from google.genai import types

from examples.files import read_file
from ullage.integrations.adk import UllageAdkPlugin


async def main(question: str, model: str = "gemini-2.5-pro") -> str:
    """Answer a question with the help of files."""
    agent = Agent(
        name="reader",
        model=model,
        instruction="Find faults.",
        tools=[read_file],
    )
    plugin = UllageAdkPlugin(store="kept.db")  # ullage
    runner = InMemoryRunner(
        app=App(name="reading", root_agent=agent, plugins=[plugin])
    )
    session = await runner.session_service.create_session(
        app_name="reading", user_id="ada"
    )
    asked = types.Content(role="user", parts=[types.Part(text=question)])
    said = ""
    async for event in runner.run_async(
        user_id="ada", session_id=session.id, new_message=asked
    ):
        for part in (event.content and event.content.parts) or []:
            said = part.text or said
    await runner.close()
    return said


if __name__ == "__main__":
    print(asyncio.run(main(*sys.argv[1:])))
