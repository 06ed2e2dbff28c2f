"""F83: notices of ours in what an agent writes."""

import pytest

from lab import reading
from lab.guard import POLICIES
from tests.failures.scenes import LINES, WIRES, new_session
from tests.loop.replies import MODEL, reply
from ullage.core.values.notices import Words, ref_line
from ullage.doors.loop import run_turn
from ullage.policy.stages.default import DEFAULT
from ullage.wires import FORMATS

CHAT = "openai-chat"
REF = "0123456789abcdef"


def writes(text, policy=DEFAULT, format=CHAT):
    """What is in a file after a model has read a long output and then written ``text`` to it.

    ``text`` None: what the view shows of the output, notice and all."""
    files, script = {}, ["read", "write", "say"]

    def read(path: str) -> str:
        return f"{path}\n{LINES * 7_000}"

    def write(path: str, content: str) -> str:
        files[path] = content
        return "written"

    def call(**view):
        number = 3 - len(script)
        calls = {"read": [("read", {"path": "a"})], "say": ()}
        if (now := script.pop(0)) == "write":
            shown = [
                given
                for _, given in reading.results(view[FORMATS[format].key][-1])
            ][-1]
            content = "\n".join(shown) if text is None else text
            calls["write"] = [("write", {"path": "b", "content": content})]
        return reply(
            format, "Done." if now == "say" else "", calls[now], number
        )

    told = [FORMATS[format].user("Copy a to b.")]
    session = new_session(format, 32_000, policy=policy)
    outcome = run_turn(
        call,
        session,
        {"model": MODEL[format], FORMATS[format].key: told},
        tools=[read, write],
    )
    assert outcome.why == "answered"
    assert ("notice" in str(outcome.history[-2])) == (not files)
    return files


NOTICES = [
    notice
    for words in (Words(), Words(recall=False))
    for notice in (
        words.cut(REF, 1, 2, 1),
        words.placeholder(REF, "an output"),
        words.record(REF, 1, 2),
        words.aside(REF, 9),
        words.media(REF, "image"),
        words.arguments(REF, 9),
        ref_line(REF, 9),
    )
]


@pytest.mark.parametrize("notice", NOTICES)
@pytest.mark.parametrize("format", WIRES)
def test_f83_no_tool_of_the_loop_is_called_with_a_notice(format, notice):
    """Our own markers were written into the user's files."""
    assert writes(f"beginning\n{notice}\nend", format=format) == {}
    about = "Notices begin with [ullage: and name a ref."
    assert writes(about, format=format) == {"b": about}


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("format", WIRES)
def test_f83_what_a_view_shows_in_part_is_written_nowhere(format, policy):
    """A file was read in part, and what was seen of it written back, marker and all."""
    assert writes(None, policy, format) == {}
