"""The pages that people copy from: each Python block runs alone, as a reader pastes it.

What is run is what a page shows, without comments that nobody sees. Each block runs as a program
of its own, in an empty folder, with the real SDKs; only the network beneath them is replaced. A
block goes on from those before it where the paragraph above it says "go on". A block of text right
under one of Python is what that prints; a line "…" in it stands for any lines.
"""

import os
import re
import subprocess
import sys
from itertools import zip_longest
from pathlib import Path

import pytest
from msgspec import Struct

from tests.docs import blocks_of
from tests.servers.everywhere import everywhere, reader_model
from tests.test_docs import COPIED, framework_of, like, title

ROOT = Path(__file__).parents[2]
KEYS = {
    "anthropic": ("ANTHROPIC_API_KEY",),
    "openai-chat": ("OPENAI_API_KEY",),
    "openai-responses": ("OPENAI_API_KEY",),
    "gemini": ("GEMINI_API_KEY",),
    "bedrock-converse": ("AWS_ACCESS_KEY_ID",),
}
MOST_BYTES_SENT = {"docs/adk.md": 250_000}
"""Of a request where it is not 64,000; the logs of the pages' tools are twice as long or more."""
_SDKS = {"docs/inspect_ai.md": "openai", "docs/pydantic-ai.md": "anthropic"}
"""The SDK that a page asks to install beside its framework's extra."""
_GOES_ON = re.compile(r"\bgo(?:es)? on\b", re.IGNORECASE)
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_NEXT = "──── the next block ────"
_TIMEOUT_S = 120


class Example(Struct, frozen=True):
    """A block of a page, what it prints according to the page, and whether it goes on."""

    line: int
    code: str
    printed: str | None
    goes_on: bool


def rendered(text):
    """A page as a reader sees it; its lines keep their numbers."""
    return _COMMENT.sub(lambda comment: "\n" * comment[0].count("\n"), text)


def examples_of(text):
    """The Python blocks of a page, in order."""
    lines, blocks = text.split("\n"), list(blocks_of(text))
    for block, below in zip_longest(blocks, blocks[1:]):
        if block.kind != "python":
            continue
        end = block.line + block.text.count("\n") + 1
        is_output = below is not None and below.kind == "text"
        between = lines[end : below.line - 1] if is_output else ["none"]
        printed = below.text if not "".join(between).strip() else None
        above = (
            "\n".join(lines[: block.line - 1]).rstrip().rpartition("\n\n")[2]
        )
        yield Example(
            block.line, block.text, printed, bool(_GOES_ON.search(above))
        )


def programs_of(text):
    """The examples of a page by program: one that stands alone, and those that go on from it."""
    programs = []
    for example in examples_of(text):
        if example.goes_on and programs:
            programs[-1].append(example)
        else:
            programs.append([example])
    return programs


def run(program, folder, vendors):
    """Run a program as a reader does, and give what each of its blocks printed."""
    code = f"\nprint({_NEXT!r})\n".join(example.code for example in program)
    file = folder / "pasted.py"
    file.write_text(code, encoding="utf-8")
    nowhere = {
        f"{name}_PROXY": "http://127.0.0.1:9" for name in ("HTTP", "HTTPS")
    }
    environment = {
        **{
            name: os.environ[name]
            for name in ("PATH", "TMPDIR")
            if name in os.environ
        },
        **nowhere,
        **vendors.environment,
        "NO_PROXY": "127.0.0.1",
        "HOME": str(folder),
        "PYTHONPATH": str(ROOT / "src"),
        "PYTHONIOENCODING": "utf-8",
    }
    done = subprocess.run(
        [sys.executable, file.name],
        cwd=folder,
        env=environment,
        capture_output=True,
        encoding="utf-8",
        timeout=_TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.split(f"{_NEXT}\n")


def cases():
    for page in COPIED:
        text = rendered(page.read_text(encoding="utf-8"))
        for program in programs_of(text):
            name = f"{title(page)}:{program[0].line}"
            yield pytest.param(page, program, id=name)


@pytest.mark.parametrize(("page", "program"), list(cases()))
def test_a_block_runs_alone_as_pasted(page, program, tmp_path):
    framework = framework_of(page)
    if framework:
        pytest.importorskip(framework, reason=f"{framework} is not installed")
    if sdk := _SDKS.get(title(page)):
        pytest.importorskip(sdk, reason=f"{sdk} is not installed")
    with everywhere(reader_model) as vendors:
        outputs = run(program, tmp_path, vendors)
        asked = {name for name in KEYS if vendors.requests(name)}
        sent = [
            len(one.raw) for name in KEYS for one in vendors.requests(name)
        ]
    assert max(sent, default=0) <= MOST_BYTES_SENT.get(title(page), 64_000)
    for example, output in zip(program, outputs, strict=True):
        if example.printed is not None:
            assert like(example.printed).fullmatch(output), (
                f"{title(page)}, line {example.line} prints:\n{output}"
            )
    above = page.read_text(encoding="utf-8").split("\n")[: program[0].line - 1]
    for name in asked:
        assert any(key in "\n".join(above) for key in KEYS[name]), (
            f"{title(page)}, line {program[0].line}: say first that it needs {KEYS[name][0]}"
        )


def test_no_page_hides_a_set_up():
    for page in COPIED:
        assert "<!-- setup" not in page.read_text(encoding="utf-8"), title(
            page
        )


# What runs the pages is itself tested: on a page with one of each


PAGE = """
<!-- setup
hidden = 1
-->

```python
total = 1
print(total)
```

```text
1
```

Go on with the total:

```python
print("some lines")
print(total + 1)
```

```text
…
2
```

Alone:

```python
print(total)
```

prints this, or something like it:

```text
3
```
"""


def test_a_block_stands_alone_unless_the_page_goes_on(tmp_path):
    first, second = programs_of(rendered(PAGE))
    assert [(each.goes_on, each.printed) for each in first] == [
        (False, "1\n"),
        (True, "…\n2\n"),
    ]
    assert [(each.goes_on, each.printed) for each in second] == [(False, None)]
    with everywhere(reader_model) as vendors:
        assert run(first, tmp_path, vendors) == ["1\n", "some lines\n2\n"]
        with pytest.raises(
            AssertionError, match="name 'total' is not defined"
        ):
            run(second, tmp_path, vendors)


def test_a_comment_is_not_run(tmp_path):
    assert "hidden" not in rendered(PAGE)
    assert rendered(PAGE).count("\n") == PAGE.count("\n")
