"""The scenario's driver for ADK: sessions are kept by its SQLite service."""

import copy
from itertools import count
from typing import Any

from google.adk.agents import Agent, RunConfig
from google.adk.agents.run_config import StreamingMode
from google.adk.apps import App
from google.adk.models import BaseLlm, LlmResponse
from google.adk.runners import Runner
from google.adk.sessions.sqlite_session_service import SqliteSessionService
from google.adk.tools import AgentTool, FunctionTool
from google.genai import types

from tests.integrations import outputs
from tests.integrations.adk.world import APP, USER
from tests.integrations.scenario import GREP, Hang, Item, text_of
from ullage import problems
from ullage.integrations.adk import UllageAdkPlugin

TOO_LONG = ValueError
BINDS = None  # a signature belongs to its own part
STREAMS_TELL_USAGE = True
_IDS = count(1)


class SPENT(Exception):
    """ADK's run ended with an event that says the budget is spent."""


def look(n: int) -> str:
    """Looks into a cupboard."""
    return outputs.big(n)


def turn(n: int) -> str:
    """Turns a page."""
    return outputs.page(n)


def sign(n: int) -> str:
    """Signs a paper."""
    return f"Signed: {n}."


def calls(*asked, thought=""):
    """A reply that calls functions: pairs of name and arguments."""
    made = [
        types.FunctionCall(id=f"call_{n}", name=name, args=args)
        for n, (name, args) in zip(_IDS, asked, strict=False)
    ]
    parts = [types.Part(function_call=each) for each in made]
    return _reply(
        [
            *([types.Part(text=thought, thought=True)] if thought else []),
            *parts,
        ]
    )


def says(text, read=0):
    """A reply that ends the run."""
    return _reply([types.Part(text=text)], read)


def _reply(parts, read=0):
    counts = {"prompt_token_count": 1_000, "candidates_token_count": 10}
    told = {
        **counts,
        "total_token_count": 1_010,
        "cached_content_token_count": read,
    }
    usage = types.GenerateContentResponseUsageMetadata(**told)
    return LlmResponse(
        content=types.Content(role="model", parts=parts), usage_metadata=usage
    )


def too_long():
    """What a provider says of a request that is too long."""
    return ValueError("prompt is too long: 15500 tokens > 8000 maximum")


def recalls(contents):
    """A reply that searches what the last notice of the prompt names."""
    ref = outputs.refs_in(text_of(items(contents)))[-1]
    return calls((GREP, {"tool_call_id": ref, "pattern": "needle"}))


class Script(BaseLlm):
    """A model of ADK's own kind that follows steps, and keeps what it was sent."""

    steps: list[Any]
    sent: list[Any]
    asked: list[Any]

    def __init__(self, steps, model):
        super().__init__(model=model, steps=steps, sent=[], asked=[])

    async def generate_content_async(self, llm_request, stream=False):
        """See `BaseLlm`."""
        self.sent.append(list(llm_request.contents))
        self.asked.append(llm_request.config)
        step = self.steps[len(self.sent) - 1]
        step = step(llm_request.contents) if callable(step) else step
        if isinstance(step, Exception):
            raise step
        if isinstance(step, Hang):
            await step.forever()
        text = step.content.parts[0].text
        if stream and text:
            first = types.Content(
                role="model", parts=[types.Part(text=text[:3])]
            )
            yield LlmResponse(content=first, partial=True)
        yield copy.deepcopy(step)


class Process:
    """One plugin for all sessions of the service."""

    def __init__(self, folder, *, budget=None, **settings):
        more = {} if budget is None else {"budget": lambda: budget}
        self.ullage = UllageAdkPlugin(policy="default", **more, **settings)
        self.folder, self.taken = folder, []

    async def say(self, script, text, name="t", *, stream=False, inner=None):
        """See `tests.integrations.scenario`."""
        part = types.Part(text=text)
        return await self._run(script, part, name, stream=stream, inner=inner)

    async def sign(self, script, name="t"):
        """Confirm what waits."""
        session = await self._session(name)
        (asked,) = (
            call
            for event in session.events
            for call in event.get_function_calls()
            if call.name == "adk_request_confirmation"
        )
        answer = {
            "id": asked.id,
            "name": asked.name,
            "response": {"confirmed": True},
        }
        return await self._run(
            script, types.Part(function_response=answer), name
        )

    async def stored(self, name="t"):
        """The contents of ADK's events, but for its own questions."""
        events = (await self._session(name)).events
        found = [
            event.content
            for event in events
            if event.content and event.content.parts
        ]
        return [each for each in found if not any(map(_is_adks, each.parts))]

    async def close(self):
        """Let go of the plugin's sessions."""
        await self.ullage.close()

    def _service(self, name):
        """A file for each session: ADK's service waits for no other writer."""
        return SqliteSessionService(str(self.folder / f"{name}.db"))

    async def _session(self, name):
        return await self._service(name).get_session(
            app_name=APP, user_id=USER, session_id=name
        )

    async def _run(self, script, part, name, *, stream=False, inner=None):
        app = App(
            name=APP,
            root_agent=_agent(script, inner, self.taken),
            plugins=[self.ullage],
        )
        runner = Runner(
            app=app,
            session_service=self._service(name),
            auto_create_session=True,
        )
        mode = StreamingMode.SSE if stream else StreamingMode.NONE
        config = RunConfig(streaming_mode=mode, max_llm_calls=0)
        message = types.Content(role="user", parts=[part])
        last = None
        ids = {"user_id": USER, "session_id": name}
        async for event in runner.run_async(
            **ids, new_message=message, run_config=config
        ):
            if event.error_code == "BUDGET_EXCEEDED":
                raise SPENT(event.error_message)
            last = event
        parts = last.content.parts or [types.Part()]
        return parts[0].text


def _is_adks(part):
    found = part.function_call or part.function_response
    return bool(
        found and found.name == "adk_request_confirmation"
    ) or "requires confirmation" in str(part.function_response)


def _agent(script, inner, taken):
    tools = [look, turn, FunctionTool(sign, require_confirmation=True)]
    tools += map(outputs.story, taken)
    if inner is not None:
        tools.append(
            AgentTool(Agent(name="ask", model=inner, tools=[look, turn]))
        )
    return Agent(
        name="finder",
        model=script,
        tools=tools,
        instruction="You look for things.",
    )


def items(contents):
    """See `tests.integrations.scenario`."""
    return [_item(each) for each in contents]


def _item(content):
    text, called, given, thoughts = [], [], [], 0
    for part in content.parts:
        if part.function_call:
            called.append(part.function_call.id)
        elif part.function_response:
            said = part.function_response.response
            given.append(
                (part.function_response.id, str(next(iter(said.values()), "")))
            )
        elif part.thought:
            thoughts += 1
        else:
            text.append(part.text or "")
    role = "assistant" if content.role == "model" else "user"
    return Item(role, "\n".join(text), tuple(called), tuple(given), thoughts)


def faults(sent):
    """What Gemini would refuse of the contents."""
    dumped = [
        each.model_dump(exclude_none=True, mode="json", by_alias=True)
        for each in sent
    ]
    return problems(
        {"model": "gemini-2.5-pro", "contents": dumped}, format="gemini"
    )


def forbids(asked):
    """Whether tools were forbidden."""
    chosen = asked.tool_config and asked.tool_config.function_calling_config
    return bool(chosen and chosen.mode == "NONE")


def offered(asked):
    """The names of the functions of a request."""
    declared = (tool.function_declarations or () for tool in asked.tools)
    return [function.name for functions in declared for function in functions]
