"""Every rule that a request can break, as data: what it asks, on whose word, what to do.

Ids are those of `provider-rules` §1.A to §1.E; rule 0 of a format is the shape of its types,
as the vendor's SDK declares them. ``source`` says where a rule was read: ``S`` the SDK's own
types, ``D`` the vendor's documentation, ``I`` errors and behaviour seen in public, ``M`` memory
alone, ``T`` someone else's description of the documentation, and nothing where it is not said.
Only S, D and I count as verified. No rule was tried against a live API.

Rules that one request does not show are in docs/validator.md, with the reason.
"""

from __future__ import annotations

from msgspec import Struct

_VERIFIED = frozenset("SDI")


class Rule(Struct, frozen=True, gc=False):
    """One rule of a provider.

    Attributes:
        id: its name, such as ``"A3"``.
        asks: what the provider asks for.
        source: letters of where it was read; see the module.
        remedy: what a caller can do who broke it.
    """

    id: str
    asks: str
    source: str
    remedy: str

    @property
    def verified(self) -> bool:
        """Whether it was read in the SDK, the documentation, or seen in public."""
        return bool(self.source) and _VERIFIED.issuperset(self.source)


# fmt: off
_ANTHROPIC = (
    Rule("A0", "roles and block types, each with the fields it needs", "S",
         "Send the block in the shape the API documents."),
    Rule("A1", "at least one message, and the first one from the user", "M",
         "Begin with a user message."),
    Rule("A3", "every tool_use is answered in the next message", "I",
         "Answer every call in the next user message, or drop the call with its message."),
    Rule("A4", "every tool_result answers a tool_use of the message before", "I",
         "Drop the result, or send the call it answers in the message before."),
    Rule("A5", "results stand first in their message", "D",
         "Put the tool_result blocks before everything else in that message."),
    Rule("A6", "the results of one batch stand in one user message", "D",
         "Put all results of one batch into one user message."),
    Rule("A7", "unique call ids, and one result each", "M",
         "Give every call its own id and exactly one result."),
    Rule("A8", "the characters of ids and tool names", "M",
         "Use letters, digits, _ and - only; 128 characters at most for a tool's name."),
    Rule("A9", "no empty text, and content in all messages but a last reply", "M",
         "Drop the empty block or message, or give it a few words."),
    Rule("A11", "from Claude 4.6 on, the last message is not the assistant's", "D",
         "End with a user message; a paused turn alone may end with the assistant's."),
    Rule("A12", "before that, no white space at the end of a last reply", "M",
         "Strip the end of the text the model is to go on from."),
    Rule("A13", "the thinking of the last reply is as it was returned", "D",
         "Send the thinking blocks of the last assistant message as they came, or none at all."),
    Rule("A14", "with manual thinking an open tool loop begins with a thinking block", "M",
         "Send the thinking block that came before the calls, or use adaptive thinking."),
    Rule("A18", "a server tool's call and its result stand together", "ID",
         "Keep a server tool's call and result together, or drop both."),
    Rule("A19", "after client calls beside an open server tool, only results, same tools", "D",
         "Send nothing but tool_result blocks after such a turn, and the tools as they were."),
    Rule("A20", "where a system message may stand", "D",
         "Put it after a user message and before an assistant message, or at the end."),
    Rule("A21", "at most four cache markers, long before short, none on thinking", "DM",
         "Keep at most four markers, 1h before 5m, on blocks that may carry one."),
    Rule("A22", "one signed compaction block, the very first, as it was returned", "SD",
         "Send the newest compaction block alone, first, as it came."),
    Rule("A23", "no fields the API does not know", "D", "Leave out what is not in the API."),
    Rule("A24", "no forced tool where the model or manual thinking excludes it", "D",
         "Use tool_choice auto or none."),
    Rule("A25", "how many images, how large", "D",
         "Send fewer or smaller images; with more than 20, none above 2000 pixels a side."),
)
_OPENAI_CHAT = (
    Rule("C0", "roles and part types, each with the fields it needs", "S",
         "Send the message in the shape the API documents."),
    Rule("C1", "every call is answered before another role speaks", "I",
         "Put one tool message per call directly after the assistant message, or drop both."),
    Rule("C2", "every tool message answers an open call before it", "I",
         "Drop the tool message, or send the call it answers too."),
    Rule("C3", "nothing stands between a batch and its results", "I",
         "Move the tool message up, directly after the message that holds its call."),
    Rule("C4", "tool_calls is not empty", "M", "Leave tool_calls out when there are none."),
    Rule("C5", "an assistant message has content, unless it has calls", "M",
         "Give the message content, or drop it."),
    Rule("C6", "ids of at most 40 characters; 64 in Responses", "M",
         "Shorten the id in the call and in its result alike."),
    Rule("C7", "arguments are a string", "M", "Send the arguments as JSON text."),
    Rule("C8", "only text in tool messages", "S",
         "Put the media into a user message after the results."),
    Rule("C10", "stream_options only with stream", "S",
         "Set stream to true or leave stream_options out."),
    Rule("C11", "GPT-6.2 takes no tools and no sampling settings here", "T",
         "Use the Responses API, or leave out tools, temperature, top_p and logprobs."),
    Rule("C12", "Gemini 3 and later: the first call of a step has its thought_signature", "I",
         "Send extra_content of the call as it came."),
)
_OPENAI_RESPONSES = (
    Rule("R0", "item types, each with the fields it needs", "S",
         "Send the item in the shape the API documents."),
    Rule("R1", "every call is answered behind it", "I",
         "Add the output of the call anywhere behind it, or drop the call."),
    Rule("R2", "every output stands behind its call", "I",
         "Drop the output, or send the call it answers before it."),
    Rule("R3", "reasoning is followed by what it was made with", "I",
         "Send the reasoning with the item that followed it, or drop both."),
    Rule("R4", "what was made with reasoning is not sent by id without it", "I",
         "Send the reasoning the item was made with, or drop the item's id as well."),
    Rule("R5", "ids fit the type and have no odd characters", "I",
         "Send the id as the server gave it, or leave it out."),
    Rule("R6", "no item twice", "I", "Send each item once."),
    Rule("R7", "nothing that only the server holds, if it holds nothing", "I",
         "Send the item itself, reasoning with its encrypted_content, or store the replies."),
    Rule("R8", "encrypted_content is as it was returned", "I",
         "Send encrypted_content byte for byte as it was returned, or drop its item."),
    Rule("R10", "previous_response_id or conversation, not both", "S",
         "Give previous_response_id or conversation, not both."),
    Rule("R14", "a compaction_trigger is the last item", "S", "Put the compaction_trigger last."),
)
_GEMINI = (
    Rule("G0", "parts, each with the fields it needs", "S",
         "Send the part in the shape the API documents."),
    Rule("G1", "the roles user and model, and which parts stand with which", "M",
         "Use the roles user and model; calls stand with model, responses with user."),
    Rule("G2", "a part at least, each with one field of data, no empty text", "M",
         "Give every content a part and every part exactly one field with data in it."),
    Rule("G3", "as many responses as calls, in one content", "I",
         "Answer every call of a step in the one content that follows it."),
    Rule("G4", "calls follow the user or responses", "I",
         "Let a user content or the function responses stand directly before the calls."),
    Rule("G5", "responses follow their calls directly", "I",
         "Put the responses directly after the content that holds their calls."),
    Rule("G6", "responses fit their calls, by id or by name and order", "",
         "Give each response the id of its call, or its name where there are no ids."),
    Rule("G7", "Gemini 3 and later: the first call of each step of this turn is signed", "DI",
         "Send the first call of each step of this turn with the signature it came with."),
    Rule("G8", "a signature stays on the part it came with", "D",
         "Send a signature only on the very part it came with, both unchanged."),
    Rule("G11", "contents are not empty, and the last one is not the model's", "M",
         "End the contents with a user content or with function responses."),
    Rule("G12", "no system instruction or tools beside cachedContent", "M",
         "Put system instruction and tools into the cache, or do without the cache."),
)
# fmt: on

RULES = {rule.id: rule for rule in (*_ANTHROPIC, *_OPENAI_CHAT, *_OPENAI_RESPONSES, *_GEMINI)}
"""Each rule by its id."""
