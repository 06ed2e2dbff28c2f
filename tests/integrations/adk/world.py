"""Real ADK agents and runners over a provider on the loopback."""

import asyncio
from contextlib import asynccontextmanager, suppress

from google import genai
from google.adk.agents import Agent
from google.adk.apps import App
from google.adk.models import Gemini
from google.adk.runners import Runner
from google.adk.sessions import DatabaseSessionService, InMemorySessionService
from google.adk.sessions.sqlite_session_service import SqliteSessionService
from google.genai import types

from tests.servers import Call, Reply
from ullage.documents.presets.multi_stage import (
    MultiStageSettings,
    multi_stage,
)
from ullage.integrations.adk import UllageAdkPlugin

APP, USER, SESSION = "sre", "ada", "incident-7"
LINE = "2026-11-21 INFO the tide came in\n"
STEP_CHARS = 200 * len(LINE)


def read_file(path: str) -> str:
    """Reads a file."""
    return f"{path}\n" + LINE * 200


def steps(count, start=0):
    """So many replies that each read another file."""
    return [
        Reply(f"Step {n}.", [Call("read_file", {"path": f"{n}.log"})])
        for n in range(start, start + count)
    ]


def client_of(server):
    """google-genai's own client, which speaks to this server alone."""
    options = {
        "base_url": server.url,
        "client_args": {"trust_env": False},
        "async_client_args": {"trust_env": False},
    }
    return genai.Client(api_key="none", vertexai=False, http_options=options)


def agent_of(
    server,
    tools=(read_file,),
    name="investigator",
    model="gemini-2.5-pro",
    **more,
):
    """An ADK agent whose model is the server."""
    gemini = Gemini(model=model, client=client_of(server))
    more = {"instruction": "You find faults.", **more}
    return Agent(name=name, model=gemini, tools=list(tools), **more)


def new_service(kind, folder):
    """A session service of ADK's; "memory" is one that no other process sees."""
    if kind == "sqlite":
        return SqliteSessionService(str(folder / "adk.db"))
    if kind == "database":
        return DatabaseSessionService(
            f"sqlite+aiosqlite:///{folder / 'adk-sql.db'}"
        )
    return InMemorySessionService()


def plugin_of(*, store=None, recall="auto", **settings):
    """The plugin with some of the document's settings changed."""
    more = {
        name: settings.pop(name) for name in list(settings) if name.islower()
    }
    policy = multi_stage(MultiStageSettings(**settings))
    return UllageAdkPlugin(policy=policy, store=store, recall=recall, **more)


@asynccontextmanager
async def running(agent, plugin, service=None):
    """A runner as an application starts it, on a session service that may have been used."""
    service = service or InMemorySessionService()
    plugins = [plugin] if plugin else []
    runner = Runner(
        app=App(name=APP, root_agent=agent, plugins=plugins),
        session_service=service,
        auto_create_session=True,
    )
    try:
        yield runner
    finally:
        await runner.close()
        if isinstance(service, DatabaseSessionService):
            await service.close()


async def say(runner, text="Find the fault.", session=SESSION, **more):
    """What the user says, and every event that comes of it."""
    message = types.Content(role="user", parts=[types.Part(text=text)])
    asked = runner.run_async(
        user_id=USER, session_id=session, new_message=message, **more
    )
    return [event async for event in asked]


async def kept(runner, session=SESSION):
    """The ADK session as its service holds it."""
    service = runner.session_service
    return await service.get_session(
        app_name=APP, user_id=USER, session_id=session
    )


async def interrupt(runner, when, text="Find the fault."):
    """Say something, and cancel the run when ``when`` is set."""
    run = asyncio.ensure_future(say(runner, text))
    await when.wait()
    run.cancel()
    with suppress(asyncio.CancelledError):
        await run


# ── what was sent ────────────────────────────────────────────────────────────────────────


def contents(captured):
    """The contents of a request, as the provider got them."""
    return captured.body["contents"]


def text_of(content):
    """The texts of a content."""
    return "\n".join(
        part["text"] for part in content["parts"] if "text" in part
    )


def responses(captured):
    """Every function response of a request, in order."""
    parts = [
        part for content in contents(captured) for part in content["parts"]
    ]
    return [
        part["functionResponse"]
        for part in parts
        if "functionResponse" in part
    ]


def functions(captured):
    """The names of the functions a request offers."""
    tools = captured.body.get("tools") or ()
    return [
        each["name"] for tool in tools for each in tool["functionDeclarations"]
    ]


def narrative(captured):
    """The message that stands for the older events, or None."""
    found = [
        text_of(each)
        for each in contents(captured)
        if "are summarised here" in str(each)
    ]
    assert len(found) <= 1
    return found[0] if found else None
