"""Judging an answer: what it quotes, what had left, and what was called back."""

import json

from demo.agenda import Question
from demo.asked import Done
from demo.judged import judged
from ullage.core.values.messages import ToolCall

QUESTION = Question(
    "json.decoder.JSONDecoder",
    "stdlib",
    r"\bJSONDecoder\b",
    "NUMBER_RE",
    "a number",
)
FILE = "stdlib/json/decoder.py"
READ = "     3|import re\n    20|NUMBER_RE = re.compile(\n   255|class JSONDecoder(object):\n"
SEARCH = "1 hits in 1 files\nstdlib/json/__init__.py:106:from .decoder import JSONDecoder\n"
ALL = (
    f"> {FILE}:255: class JSONDecoder(object):\n> {FILE}:3: import re\n"
    "> stdlib/json/__init__.py:106: from .decoder import JSONDecoder\n"
    f"> {FILE}:20: NUMBER_RE = re.compile("
)


def call(name, arguments, text, *, is_recall=False):
    return Done(
        ToolCall("1", name, json.dumps(arguments), 0),
        text,
        is_recall=is_recall,
    )


class Run:
    def __init__(self, answer, seen=(), recalled=()):
        self.answer, self.seen = answer, list(seen)
        self.done = [
            call("read_file", {"path": FILE}, READ),
            call(
                "search", {"pattern": "JSONDecoder", "path": "stdlib"}, SEARCH
            ),
            *(
                call("get_continuation", {}, text, is_recall=True)
                for text in recalled
            ),
        ]


def found(*arguments, **more):
    of = judged([QUESTION], Run(*arguments, **more))
    return of.quoted, of.untrue, of.left, of.called_back


def test_all_is_quoted_while_all_is_seen():
    assert found(ALL, [READ, SEARCH]) == (4, 0, 0, 0)


def test_quotes_may_be_marked_up():
    listed = ALL.replace("> ", "- `").replace("\n", "`\n")
    assert found(f"{listed}`", [READ, SEARCH])[:2] == (4, 0)


def test_words_no_tool_returned_and_lines_that_are_not_there_are_untrue():
    answer = ALL.replace(":255: class", ":256: class").replace(
        "import re\n", "import regex\n"
    )
    assert found(answer, [READ, SEARCH]) == (2, 2, 0, 0)


def test_what_is_not_sent_any_more_has_left():
    assert found("No.", [SEARCH]) == (0, 0, 3, 0)


def test_what_a_recall_tool_returned_was_called_back():
    assert found(ALL, [SEARCH], [READ.partition("    20")[0]]) == (4, 0, 3, 1)


def test_a_record_that_still_tells_the_line_keeps_it_in_the_window():
    record = f"read_file {FILE}:\n   255|class JSONDecoder(object):"
    assert found(ALL, [SEARCH, record])[2] == 2


def test_a_run_without_an_answer_is_not_asked_what_it_still_saw():
    assert found("", []) == (0, 0, 0, 0)


def test_arguments_that_are_no_json_return_no_lines():
    run = Run(ALL, [SEARCH])
    run.done[0] = Done(
        ToolCall("1", "read_file", "{", 0), READ, is_recall=False
    )
    assert judged([QUESTION], run).quoted == 1
