"""The window as a picture: in a notebook, under rich, and as SVG."""

import base64
import io
import json
import re
import subprocess
import sys
import xml.etree.ElementTree as ET

import pytest
from rich.console import Console

import ullage
from ullage.session.picture.drawn import PictureMixin
from ullage.session.picture.svg import svg
from ullage.session.picture.terminal import columns, text
from ullage.session.picture.values import KINDS, OneWindow, OverCalls
from ullage.session.picture.window import one_window

CALL = {
    "id": "call_1",
    "type": "function",
    "function": {"name": "read", "arguments": "{}"},
}
MESSAGES = [
    {"role": "system", "content": "Be brief. " * 40},
    {"role": "user", "content": "What does the log say? " * 40},
    {"role": "assistant", "tool_calls": [CALL]},
    {
        "role": "tool",
        "tool_call_id": "call_1",
        "content": "all is secretly well\n" * 20_000,
    },
]


def seen(messages=MESSAGES):
    limits = ullage.Limits(window_tokens=16_000)
    session = ullage.Session("gpt-4.1", limits=limits, recall=True)
    return session, session.fit({"model": "gpt-4.1", "messages": messages})


def printed(value, width=60):
    console = Console(file=io.StringIO(), width=width)
    console.print(value)
    return console.file.getvalue()


def test_a_window_is_counted_by_kind_and_comes_to_what_is_sent():
    session, view = seen()
    picture = one_window(session.window, "A session")
    assert sum(picture.view.values()) == view.sent.tokens
    assert tuple(picture.view) == KINDS
    assert picture.history["tool results"] > 80_000
    assert 0 < picture.view["records and notices"] < 12_000
    assert picture.view["user"] == picture.history["user"] > 100
    assert picture.history["records and notices"] == 0


def test_an_old_run_comes_to_what_is_sent_with_its_records_and_what_they_hide():
    messages = [MESSAGES[1]]
    for number in range(80):
        call = {**CALL, "id": f"call_{number}"}
        messages.append(
            {
                "role": "assistant",
                "content": f"step {number}",
                "tool_calls": [call],
            }
        )
        told = f"line {number} of it all\n" * 300
        messages.append(
            {"role": "tool", "tool_call_id": call["id"], "content": told}
        )
    session, view = seen(messages)
    assert session.window.summaries or session.window.changed
    picture = one_window(session.window, "A session")
    assert sum(picture.view.values()) == view.sent.tokens
    assert sum(picture.history.values()) > 10 * sum(picture.view.values())


@pytest.mark.parametrize("which", [0, 1], ids=["session", "view"])
def test_a_notebook_shows_an_image_that_says_what_it_is_and_holds_no_content(
    which,
):
    shown = seen()[which]._repr_html_()
    image = ET.fromstring(shown)
    assert "tokens sent of a history of" in image.get("alt")
    drawing = base64.b64decode(
        image.get("src").partition("base64,")[2]
    ).decode()
    assert ET.fromstring(drawing).tag.endswith("svg")
    assert "tool results: " in drawing
    assert "secretly" not in drawing + shown


@pytest.mark.parametrize("which", [0, 1], ids=["session", "view"])
def test_rich_prints_the_window_within_sixty_columns(which):
    said = printed(seen()[which])
    assert re.search(r"tokens sent of a history of \d+k; limit 14k", said)
    assert "records and notices" in said
    assert "secretly" not in said
    assert max(map(len, said.splitlines())) <= 60


def test_before_anything_was_fitted_there_is_no_picture():
    session = ullage.Session("gpt-4.1")
    assert session._repr_html_() is None
    assert printed(session, 200).strip() == repr(session)


def test_a_view_keeps_its_own_picture():
    session, view = seen()
    alone = view._repr_html_()
    again = seen()[1]
    view.observe(
        {"id": "r", "usage": {"prompt_tokens": 9_000, "completion_tokens": 9}}
    )
    later = session.fit(
        {"model": "gpt-4.1", "messages": [*MESSAGES, MESSAGES[1]]}
    )
    assert view._repr_html_() == again._repr_html_() == alone
    assert later._repr_html_() != alone


def test_a_view_is_still_the_request_it_was():
    _, view = seen()
    assert json.loads(json.dumps(view)) == dict(view)
    assert issubclass(type(view), PictureMixin)


def test_looking_changes_nothing_that_is_sent():
    looked, plain = seen()[0], seen()[0]
    looked._repr_html_()
    more = {"model": "gpt-4.1", "messages": [*MESSAGES, MESSAGES[1]]}
    assert looked.fit(more) == plain.fit(more)


def test_no_number_stands_on_the_line_of_the_limit():
    sizes = dict.fromkeys(KINDS, 0)
    history, shown = (
        {**sizes, "tool results": 100_000},
        {**sizes, "user": 9_000},
    )
    drawn = ET.fromstring(
        svg(
            OneWindow(
                title="t", limit_tokens=12_000, history=history, view=shown
            )
        )
    )
    number = next(each for each in drawn.iter() if each.text == "9k")
    line = next(each for each in drawn.iter() if each.get("class") == "limit")
    assert float(number.get("x")) > float(line.get("d")[1:].split()[0])


def test_nothing_set_aside_is_said_so():
    sizes = dict.fromkeys(KINDS, 10)
    picture = OneWindow(title="t", limit_tokens=100, history=sizes, view=sizes)
    assert picture.summary == "50 tokens, nothing set aside; limit 100"


def test_a_run_is_two_rows_of_columns_on_one_scale():
    run = OverCalls(
        title="A run",
        summary="",
        limit_tokens=5,
        history=[10, 80],
        views=[10, 40],
    )
    assert text(run).plain.splitlines()[2:] == [
        "history ▂█ 80",
        "sent    ▂▅ 40",
    ]
    none = OverCalls(
        title="A run", summary="", limit_tokens=5, history=[], views=[]
    )
    assert "call 0" in svg(none)
    assert text(none).plain == "A run\n"


def test_of_more_calls_than_columns_the_largest_are_shown():
    assert columns([1] * 999 + [8], 8, 10) == "▂" * 9 + "█"


def test_a_session_does_not_load_rich():
    code = (
        "import sys, ullage; s = ullage.Session('gpt-4.1');"
        "s.fit({'messages': [{'role': 'user', 'content': 'x'}]}); s._repr_html_();"
        "print('rich' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "False"
