"""One result, cut before its framework keeps it."""

import asyncio

from tests.integrations.outputs import big, refs_in
from ullage.integrations._results import cut_message
from ullage.integrations._sessions import AsyncHostSessions
from ullage.wires import FORMATS

FUNCTION = {"name": "look", "arguments": "{}"}
CALL = {
    "role": "assistant",
    "tool_calls": [{"id": "c", "type": "function", "function": FUNCTION}],
}
RESULT = {"role": "tool", "tool_call_id": "c", "content": big(1)}


def test_a_result_is_cut_before_it_is_kept_and_its_original_is_stored(
    tmp_path,
):
    async def main():
        sessions = AsyncHostSessions("openai-chat", store=tmp_path / "kept.db")
        session, wire = await sessions.opened("a", {}), FORMATS["openai-chat"]
        shown = await cut_message(session, wire, CALL, RESULT, "look")
        assert len(shown["content"]) < 20_000
        (ref,) = refs_in(shown["content"])
        assert (await session.store.get("a", ref)).text == big(1)
        small = {**RESULT, "content": "small"}
        assert await cut_message(session, wire, CALL, small, "look") is None
        await sessions.close()

    asyncio.run(main())
