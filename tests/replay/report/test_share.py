"""A page that is given to others holds nothing that is told as private by its form."""

import base64
import json
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.replay.test_report import PROFILE, parsed, picture
from tests.replay.test_run import small_run
from ullage.tools.replay.readers import Run
from ullage.tools.replay.report import page_of
from ullage.tools.replay.report.share import (
    repacked,
    shareable,
    without_private,
)

KEY = "sk-ant-api03-" + "Ab1" * 20
HOME, MAC, ROOT, DRIVE = "/home", "/Users", "/root", r"C:\Users"
PEM_LINE = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQ12"


@pytest.mark.parametrize(
    ("private", "left"),
    [
        (f"export KEY={KEY}", "export KEY=[redacted]"),
        ("mail ada.l@example.co.uk now", "mail [redacted] now"),
        (f"File {HOME}/ada/src/a.py, line 3", "File ~/src/a.py, line 3"),
        (f"cat {MAC}/Ada L/notes", "cat ~ L/notes"),
        (rf"{DRIVE}\ada\a.py", r"~\a.py"),
        (json.dumps({"p": rf"{DRIVE}\ada\a.py"}), r'{"p": "~\\a.py"}'),
        (f"ls {ROOT}/.ssh", "ls ~/.ssh"),
        ("DB_PASSWORD=hunter2hunter2x", "DB_PASSWORD=[redacted]"),
        ('{"api_key": "0123456789abcdef"}', '{"api_key": "[redacted]"}'),
        (f"a\n{PEM_LINE}\nb", "a\n[redacted]\nb"),
        ("key sk-ab12cd34 ⟨… 9 characters not in this page …⟩ ef56gh78ij end",
         "key [redacted] ⟨… 9 characters not in this page …⟩ [redacted] end"),
    ],
)  # fmt: skip
def test_what_is_private_goes_and_the_rest_stays(private, left):
    assert shareable(private) == left


@pytest.mark.parametrize(
    "public",
    [
        "the tokens: 12,000 of 64,000",
        "max_tokens=4096, token_budget: default",
        "def __init__(self): return user@host",
        "see /usr/lib/python3/dist-packages and /rooted/x",
        "commit 323cacc1e5f1a2b3c4d5e6f708192a3b4c5d6e7f",
        "ref=k95kj787by5kbb9y",
    ],
)
def test_what_is_not_private_stays(public):
    assert shareable(public) == public


@given(st.text(alphabet="ab1/@.:=-_ \n⟨…⟩\\", max_size=300))
def test_taking_out_twice_is_taking_out_once(text):
    once = shareable(text)
    assert shareable(once) == once


def test_no_text_of_the_page_keeps_it(tmp_path):
    run = small_run("openai-chat", 12)
    secret = f"{HOME}/ada/x {KEY} ada@example.org\n"
    for message in run.messages:
        if isinstance(message.get("content"), str):
            message["content"] = secret + message["content"]
    run = Run(
        **{f: getattr(run, f) for f in run.__struct_fields__}
        | {"id": f"ada@example.org {KEY}"}
    )
    drawn, rows = picture(run)
    asked = {"pictures": [drawn], "rows": rows, "profiles": [PROFILE]}
    page = page_of(
        secret, secret, **asked, command=secret, notes=[secret], share=True
    )
    story = json.dumps(
        without_private(json.loads(unpacked(repacked(drawn.story))))
    )
    for text in (page, story, *map(unpacked, blobs_of(page))):
        for private in ("ada@", f"{HOME}/ada", KEY[:20]):
            assert private not in text
    whole = page_of("t", "l", **asked)
    assert any(KEY in unpacked(blob) for blob in blobs_of(whole)), (
        "without --share it is there"
    )


def blobs_of(page):
    elements = parsed(page)
    named = zip(elements.tags, elements.bodies, strict=True)
    return [
        base64.b64decode(body)
        for (tag, attributes), body in named
        if tag == "script" and attributes.get("type") == "text/plain"
    ]


def unpacked(blob):
    return zlib.decompress(blob).decode()
