"""Legal histories in both formats, generated: the ground the judge is tested on."""

from hypothesis import strategies as st

WORDS = st.text("abc xyz.", min_size=1, max_size=8).filter(lambda t: t.strip())
RESULT = st.one_of(st.just(""), WORDS)
TURN = st.tuples(
    WORDS,
    st.lists(st.lists(RESULT, min_size=1, max_size=3), max_size=3),
    WORDS,
)
TURNS = st.lists(TURN, min_size=1, max_size=4)


def chat(turns, system=True):
    """Turns as an OpenAI Chat history; a turn is (ask, batches of results, answer)."""
    messages = [{"role": "system", "content": "be brief"}] if system else []
    for at, (ask, batches, answer) in enumerate(turns):
        messages.append({"role": "user", "content": ask})
        for step, results in enumerate(batches):
            ids = [f"call_{at}_{step}_{n}" for n in range(len(results))]
            calls = [
                {
                    "id": i,
                    "type": "function",
                    "function": {"name": "run", "arguments": "{}"},
                }
                for i in ids
            ]
            messages.append(
                {"role": "assistant", "content": None, "tool_calls": calls}
            )
            messages += [
                {"role": "tool", "tool_call_id": i, "content": text}
                for i, text in zip(ids, results, strict=True)
            ]
        messages.append({"role": "assistant", "content": answer})
    return messages


def anthropic(turns):
    """The same turns as an Anthropic history, with a thinking block before each call."""
    messages = []
    for at, (ask, batches, answer) in enumerate(turns):
        messages.append({"role": "user", "content": ask})
        for step, results in enumerate(batches):
            ids = [f"toolu_{at}_{step}_{n}" for n in range(len(results))]
            thought = {
                "type": "thinking",
                "thinking": "",
                "signature": f"s{at}{step}",
            }
            calls = [
                {"type": "tool_use", "id": i, "name": "run", "input": {}}
                for i in ids
            ]
            messages.append(
                {"role": "assistant", "content": [thought, *calls]}
            )
            blocks = [
                {"type": "tool_result", "tool_use_id": i, "content": text}
                for i, text in zip(ids, results, strict=True)
            ]
            messages.append({"role": "user", "content": blocks})
        messages.append(
            {
                "role": "assistant",
                "content": [{"type": "text", "text": answer}],
            }
        )
    return messages
