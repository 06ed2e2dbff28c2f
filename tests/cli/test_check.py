"""`ullage check`, and the function behind it."""

import json

import pytest
from anthropic.types import Message, ToolUseBlock, Usage

import ullage as package
from tests.cli.terminal import conversation, told, ullage
from ullage.core.errors import ConfigError, FormatError
from ullage.wires.rules.checker import problems

LEGAL = conversation("all is well")
BROKEN = {**LEGAL, "messages": LEGAL["messages"][:2]}
SPOKEN = {
    "model": "claude-sonnet-4-5",
    "max_tokens": 100,
    "messages": [
        {"role": "assistant", "content": [{"type": "text", "text": " "}]},
        {"role": "user", "content": "go on"},
    ],
}


def check(request, options=()):
    return ullage("check", "-", *options, stdin=json.dumps(request).encode())


def test_a_legal_request_is_told_by_status_alone():
    ran = check(LEGAL)
    assert (ran.status, ran.out, ran.err) == (0, b"", "")


def test_a_broken_rule_is_told_with_its_name_place_sentence_and_remedy():
    ran = check(BROKEN)
    assert ran.status == 1
    assert ran.text == (
        "C1   messages[1].tool_calls[0]: this call has no tool message. "
        "Put one tool message per call directly after the assistant message, or drop both.\n"
    )


def test_every_broken_rule_is_told():
    assert [line.split()[0] for line in check(SPOKEN).text.splitlines()] == [
        "A1",
        "A9",
    ]


def test_a_rule_known_from_memory_alone_says_so():
    nobody_spoke = {"role": "assistant", "content": None}
    ran = check({"model": "gpt-5", "messages": [nobody_spoke]})
    assert ran.text.startswith("C5   messages[0].content: ")
    assert "(unverified). " in ran.text
    (row,) = check(
        {"model": "gpt-5", "messages": [nobody_spoke]}, options=["--json"]
    ).json
    assert row["verified"] is False


def test_with_json_it_is_data():
    ran = check(BROKEN, options=["--json"])
    assert ran.status == 1
    (row,) = ran.json
    assert (row["rule"], row["where"]) == ("C1", "messages[1].tool_calls[0]")
    assert set(row) == {"rule", "where", "sentence", "remedy", "verified"}
    assert check(LEGAL, options=["--json"]).json == []


def test_a_file_over_several_lines_is_one_request(tmp_path):
    file = tmp_path / "request.json"
    file.write_text(json.dumps(BROKEN, indent=2))
    assert ullage("check", file).text == check(BROKEN).text


def test_the_format_decides_where_the_request_does_not():
    request = {"messages": [{"role": "user", "content": "hi"}]}
    assert "format=" in told(check(request))
    assert check(request, options=["--format", "anthropic"]).status == 0


@pytest.mark.parametrize(
    ("stdin", "says"),
    [
        (b"", "the file: not JSON"),
        (b"{'a': 1}", "the file: not JSON"),
        (b"\xff\xfe", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b"[1]", "expected an object"),
        (b"3", "expected an object"),
        (b"{}", "request: its format cannot be told"),
        (b'{"model": "gpt-4.1", "messages": 3}', "messages: expected a list"),
        (b'{"model": "gpt-4.1", "messages": []}\n{}', "the file: not JSON"),
    ],
)
def test_what_cannot_be_read_is_told_in_one_helpful_line(stdin, says):
    ran = ullage("check", "-", stdin=stdin)
    assert ran.status == 2
    assert says in told(ran)


def test_fit_mends_what_check_finds(tmp_path):
    stdin, store = json.dumps(BROKEN).encode(), tmp_path / "kept.db"
    ran = ullage("fit", "-", "--repair", "--store", store, stdin=stdin)
    assert "repaired  message 2, bash: a call had no result" in ran.err
    assert ullage("check", "-", stdin=ran.out).status == 0
    left = ullage("fit", "-", "--store", store, stdin=stdin)
    assert ullage("check", "-", stdin=left.out).status == 1


# The function


def test_objects_of_an_sdk_are_taken_too():
    block = ToolUseBlock(id="toolu_1", name="bash", input={}, type="tool_use")
    usage = Usage(input_tokens=1, output_tokens=1)
    reply = Message(
        id="m",
        content=[block],
        model="claude",
        role="assistant",
        type="message",
        usage=usage,
    )
    messages = [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": reply.content},
    ]
    (problem,) = problems({"model": "claude-sonnet-4-5", "messages": messages})
    assert (problem.rule, problem.where) == ("A3", "messages[1].content[0]")
    assert problem.remedy


def test_it_is_public():
    assert package.problems is problems
    assert isinstance(problems(BROKEN)[0], package.Problem)
    assert problems(LEGAL) == problems(LEGAL, "openai-chat") == []


@pytest.mark.parametrize("request_", [None, 5, "text", [LEGAL]])
def test_what_is_no_request_is_an_error(request_):
    with pytest.raises(FormatError, match="expected an object"):
        problems(request_)


def test_an_unknown_format_is_an_error():
    with pytest.raises(ConfigError, match="morse"):
        problems(LEGAL, "morse")
