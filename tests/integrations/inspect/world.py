"""Real evals of Inspect with its own test model."""

from itertools import count

from inspect_ai import Task
from inspect_ai import eval as run_eval
from inspect_ai.agent import react
from inspect_ai.dataset import Sample
from inspect_ai.model import (
    ChatMessageAssistant,
    ChatMessageTool,
    ContentReasoning,
    GenerateConfig,
    ModelOutput,
    ModelUsage,
    get_model,
)
from inspect_ai.tool import ToolCall, tool

from tests.integrations import outputs
from tests.integrations.outputs import GREP

_IDS = count(1)


@tool
def look():
    async def execute(n: int) -> str:
        """Look into a cupboard.

        Args:
            n: Its number.
        """
        return outputs.big(n)

    return execute


@tool
def turn():
    async def execute(n: int) -> str:
        """Turn a page.

        Args:
            n: Its number.
        """
        return outputs.page(n)

    return execute


def usage(prompt=1_000, output=10, read=None, written=None):
    """Usage as Inspect has it: what was cached stands beside the input."""
    return ModelUsage(
        input_tokens=prompt,
        output_tokens=output,
        total_tokens=prompt + output + (read or 0) + (written or 0),
        input_tokens_cache_read=read,
        input_tokens_cache_write=written,
    )


def calls(*asked, thought=None, counts=None):
    """An output that calls tools: pairs of name and arguments."""
    made = [
        ToolCall(f"call_{next(_IDS)}", name, dict(arguments))
        for name, arguments in asked
    ]
    first = (
        [ContentReasoning(reasoning=thought, signature="c2lnbmVk" * 30)]
        if thought
        else ""
    )
    return _output(
        ChatMessageAssistant(content=first, tool_calls=made), counts
    )


def says(answer, counts=None):
    """An output that hands in an answer, as `react` asks for it."""
    made = calls(("submit", {"answer": answer}))
    return _output(made.message, counts)


def said(text):
    """An output that calls nothing."""
    return _output(ChatMessageAssistant(content=text))


def too_long(text="prompt is too long: 15500 tokens > 8000 maximum"):
    """What Inspect makes of a provider's refusal: an output."""
    output = ModelOutput.from_content(
        "mockllm", text, stop_reason="model_length"
    )
    output.usage = usage(0, 0)
    return output


def _output(message, counts=None):
    output = ModelOutput.from_message(message)
    output.usage = (
        counts or usage()
    )  # else Inspect counts, and asks the network for that
    return output


def recalls(messages):
    """An output that searches what the last notice of the prompt names."""
    ref = outputs.refs_in(text_of(messages))[-1]
    return calls((GREP, {"tool_call_id": ref, "pattern": "needle"}))


class Script:
    """What the test model says: a list step by step, or a function of the messages.

    A callable in the list is given the messages; an error in it is raised.
    """

    def __init__(self, steps):
        self.steps, self.sent, self.asked = steps, [], []

    def __call__(self, messages, tools, tool_choice, config):
        self.sent.append(messages)
        self.asked.append((tools, tool_choice))
        step = self.steps
        if isinstance(step, list):
            step = step[len(self.sent) - 1]
        if callable(step):
            step = step(messages)
        if isinstance(step, BaseException):
            raise step
        return step

    def model(self, name="gpt-4.1"):
        """The test model that says it."""
        return get_model(f"mockllm/{name}", custom_outputs=self, memoize=False)


def evaluate(
    script,
    ullage,
    folder,
    inputs=("Find the needle.",),
    tools=(look, turn),
    **more,
):
    """An eval as it is run from a file: its log, read back from the disk."""
    agent = react(
        tools=[*(make() for make in tools), *ullage.tools], model=ullage.agent
    )
    return run_task(agent, script, folder, inputs, **more)


def run_task(
    solver,
    script,
    folder,
    inputs=("Find the needle.",),
    model="gpt-4.1",
    **more,
):
    """The same of any solver."""
    task = Task(
        dataset=[Sample(input=text) for text in inputs],
        solver=solver,
        config=GenerateConfig(max_tool_output=0),
    )
    (log,) = run_eval(
        task,
        model=script.model(model),
        log_dir=str(folder),
        display="none",
        log_level="critical",
        log_level_transcript="critical",
        **more,
    )
    return log


def results(messages):
    """The texts of all results but that of the answer, in order."""
    given = [
        m
        for m in messages
        if isinstance(m, ChatMessageTool) and m.function != "submit"
    ]
    return [m.text if m.error is None else m.error.message for m in given]


def text_of(messages):
    """All that messages say."""
    said = [m.text for m in messages if not isinstance(m, ChatMessageTool)]
    return "\n".join([*said, *results(messages)])


def shown(messages):
    """Messages as they are sent, for a comparison to the byte."""
    return [message.model_dump_json(exclude={"id"}) for message in messages]
