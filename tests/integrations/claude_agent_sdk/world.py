"""The SDK with the Claude Code it brings, against a provider that follows a script."""

from claude_agent_sdk import (
    ClaudeAgentOptions,
    SdkMcpTool,
    create_sdk_mcp_server,
    query,
)

from tests.integrations import outputs
from tests.servers import Call, provider

READ_ON = f"mcp__ullage__{outputs.GREP}"
LOOK = "mcp__mine__look"


async def _look(arguments):
    return {"content": [{"type": "text", "text": outputs.big(arguments["n"])}]}


def options_of(server, home, **more):
    """Options as an application has them, with a tool of its own that answers much."""
    look = SdkMcpTool("look", "Looks into a cupboard.", {"n": int}, _look)
    return ClaudeAgentOptions(
        mcp_servers={"mine": create_sdk_mcp_server("mine", tools=[look])},
        allowed_tools=[LOOK, "Bash", "Read"],
        setting_sources=[],
        cwd=home,
        env={
            "ANTHROPIC_BASE_URL": server.url,
            "ANTHROPIC_API_KEY": "none",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
            "HOME": str(home),
        },
        **more,
    )


def looks(*numbers):
    """What the model says to look into cupboards, all at once."""
    return [Call(LOOK, {"n": n}) for n in numbers]


def searches(ref):
    """What the model says to search what was cut."""
    return [Call(READ_ON, {"tool_call_id": ref, "pattern": "needle"})]


def scripted(replies):
    """The provider; a function among the replies is given the results of the request."""
    steps = iter(replies)

    def answer(captured):
        step = next(steps)
        return step(results(captured)) if callable(step) else step

    return provider("anthropic", answer)


def results(captured):
    """The texts of a request's results, in order."""
    blocks = [
        block
        for message in captured.body["messages"]
        if isinstance(message["content"], list)
        for block in message["content"]
        if block["type"] == "tool_result"
    ]
    return [_text(block["content"]) for block in blocks]


def _text(content):
    if isinstance(content, str):
        return content
    return "".join(item.get("text", "") for item in content)


async def ask(options, prompt="Find the needle."):
    """A run of the agent, to its end: its session and what it says."""
    async for message in query(prompt=prompt, options=options):
        last = message
    return last
