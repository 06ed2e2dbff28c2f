"""How each vendor says no: the 400s of `provider-rules` §1 and §5, in the vendor's shape."""

from typing import Any

from msgspec import Struct

_WORDS = {
    "A3": "`tool_use` ids were found without `tool_result` blocks immediately after. Each "
    "`tool_use` block must have a corresponding `tool_result` block in the next message.",
    "A4": "unexpected `tool_use_id` found in `tool_result` blocks. Each `tool_result` block must "
    "have a corresponding `tool_use` block in the previous message.",
    "A9": "text content blocks must be non-empty",
    "A23": "Extra inputs are not permitted",
    "C1": "An assistant message with 'tool_calls' must be followed by tool messages responding "
    "to each 'tool_call_id'.",
    "C2": "Invalid parameter: messages with role 'tool' must be a response to a preceeding "
    "message with 'tool_calls'.",
    "R1": "No tool output found for function call.",
    "R2": "No tool call found for function call output.",
    "R3": "Item of type 'reasoning' was provided without its required following item.",
    "G3": "Please ensure that the number of function response parts is equal to the number of "
    "function call parts of the function call turn.",
    "G4": "Please ensure that function call turn comes immediately after a user turn or after a "
    "function response turn.",
    "G5": "Please ensure that function response turn comes immediately after a function call turn.",
    "B2": "A conversation must alternate between user and assistant roles. Make sure the "
    "conversation alternates between user and assistant roles and try again.",
    "B3": "Expected toolResult blocks for the following Ids.",
    "B4": "The number of toolResult blocks exceeds the number of toolUse blocks of previous turn.",
    "B8": "The toolConfig field must be defined when using toolUse and toolResult content blocks.",
    "G7": "Function call is missing a thought_signature in functionCall parts.",
}
"""The vendor's sentence for a rule, where one is known; else the rule's own."""


class Refusal(Struct, frozen=True):
    """An answer that is an error, with headers of its own if there are any."""

    status: int
    body: dict[str, Any]
    headers: dict[str, str] = {}


def refused(format, problem):
    """The vendor's 400 for the first rule that a request breaks."""
    words = _WORDS.get(problem.rule, problem.sentence)
    return _SHAPES[format](f"{problem.where}: {words} [{problem.rule}]")


def too_long(format, tokens, limit):
    """The vendor's 400 for a prompt that is over the window."""
    match format:
        case "anthropic":
            return _anthropic(
                f"prompt is too long: {tokens} tokens > {limit} maximum"
            )
        case "openai-chat":
            words = (
                f"This model's maximum context length is {limit} tokens. However, your messages "
                f"resulted in {tokens} tokens. Please reduce the length of the messages."
            )
            return _openai(words, "messages", "context_length_exceeded")
        case "openai-responses":
            words = (
                "Your input exceeds the context window of this model. Please adjust your input "
                "and try again."
            )
            return _openai(words, "input", "context_length_exceeded")
        case "ollama":
            over = f"prompt too long; exceeded max context length by {tokens - limit} tokens"
            return _ollama(over)
        case "bedrock-converse":
            return _converse("Input is too long for requested model.")
    return _gemini(
        f"The input token count ({tokens}) exceeds the maximum number of tokens allowed ({limit})."
    )


def _anthropic(message):
    error = {"type": "invalid_request_error", "message": message}
    return Refusal(
        400, {"type": "error", "error": error, "request_id": "req_1"}
    )


def _openai(message, param=None, code=None):
    kind = "invalid_request_error"
    error = {"message": message, "type": kind, "param": param, "code": code}
    return Refusal(400, {"error": error})


def _gemini(message):
    error = {"code": 400, "message": message, "status": "INVALID_ARGUMENT"}
    return Refusal(400, {"error": error})


def _ollama(message):
    return Refusal(400, {"error": message})


def _converse(message):
    return Refusal(
        400,
        {"message": message},
        {"x-amzn-errortype": "ValidationException:http://x/"},
    )


_SHAPES = {
    "anthropic": _anthropic,
    "openai-chat": _openai,
    "openai-responses": _openai,
    "gemini": _gemini,
    "ollama": _ollama,
    "bedrock-converse": _converse,
}
