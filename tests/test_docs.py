"""The documentation runs: see `tests.docs` for what it is run with."""

import ast
import asyncio
import inspect
import re
import shlex
import sys
from functools import cache
from pathlib import Path

import pytest

from tests.cli.terminal import ullage
from tests.docs import GIVEN, blocks_of, stand_ins
from tests.house.test_house import APART
from tests.site.test_reading import USERS

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
PAGES = [README, *sorted((ROOT / "docs").rglob("*.md"))]
USER_PAGES = [README, *(ROOT / "docs" / name for _, name in USERS)]


def blocks(page):
    return list(blocks_of(page.read_text(encoding="utf-8")))


def title(page):
    return page.relative_to(ROOT).as_posix()


COPIED = [*USER_PAGES, ROOT / "docs" / "extending.md"]
"""The pages whose blocks run alone, as pasted (`tests.site`)."""
READ_IN_ORDER = [page for page in PAGES if page not in COPIED]
"""The pages that are run here, each from its beginning to its end."""


def framework_of(page):
    """The module of the framework that a page is about, or None."""
    imported = re.findall(
        r"(?m)^(?:from|import) ([\w.]+)", page.read_text(encoding="utf-8")
    )
    names = (
        name
        for name in APART.values()
        if any(f"{i}.".startswith(f"{name}.") for i in imported)
    )
    return next(names, None)


@pytest.fixture
def reader(monkeypatch, tmp_path, request):
    """Names as a reader has them: an empty folder, stand-ins for the SDKs.

    A page of a framework runs where that is installed, on the SDKs it brings.
    """
    page = getattr(
        request.node, "callspec", None
    ) and request.node.callspec.params.get("page")
    framework = page and framework_of(page)
    if framework:
        pytest.importorskip(framework, reason=f"{framework} is not installed")
    else:
        for name, module in stand_ins().items():
            monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setenv("ULLAGE_STORE", str(tmp_path / "kept.db"))
    monkeypatch.chdir(tmp_path)
    return {"__name__": "__main__", **GIVEN}


def execute(block, page, names):
    """Run a block; an error points at the line of the page. ``await`` may stand at the top."""
    code = compile(
        "\n" * block.line + block.text,
        title(page),
        "exec",
        flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT,
    )
    result = eval(code, names)
    if inspect.iscoroutine(result):
        asyncio.run(result)


@pytest.mark.parametrize("page", READ_IN_ORDER, ids=title)
def test_every_python_block_runs(page, reader, capsys):
    for block in blocks(page):
        if block.kind in ("python", "setup"):
            execute(block, page, reader)


def test_no_block_asks_to_be_left_out():
    for name, block in (
        (title(page), block) for page in PAGES for block in blocks(page)
    ):
        kind, place = (
            block.kind.partition(" ")[0],
            f"{name}, line {block.line}",
        )
        assert kind not in ("py", "python3", "pycon", "py3"), (
            f"{place}: write python"
        )
        assert kind != "python" or block.kind == "python", (
            f"{place}: {block.kind}"
        )
        assert kind != "console" or block.kind in (
            "console",
            "console checked",
        ), place
        assert kind not in ("sh", "bash", "shell"), f"{place}: write console"


@pytest.mark.parametrize("page", PAGES, ids=title)
def test_checked_commands_print_what_is_written(page, reader):
    for block in blocks(page):
        if block.kind == "setup":
            execute(block, page, reader)
        if block.kind == "console checked":
            for command, written in commands(block):
                assert command[0] == "ullage", (
                    f"line {block.line}: only ullage can be checked"
                )
                ran = ullage(*command[1:])
                assert like(written).fullmatch(ran.text + ran.err), (
                    f"line {block.line}"
                )


def commands(block):
    """Each command of a console block and what is written as its output."""
    for piece in re.split(r"(?m)^\$ ", block.text)[1:]:
        command, _, written = piece.partition("\n")
        yield shlex.split(command, comments=True), written


def like(written):
    lines = [
        ".*" if line == "…" else re.escape(line)
        for line in written.rstrip().split("\n")
    ]
    return re.compile("\n".join(lines) + r"\s*", re.DOTALL)


def test_commands_shown_exist_with_their_options():
    for place, line in shown(r"(?m)^(?:\$ )?ullage (.*)"):
        ours, _, _ = line.partition(" -- ")  # behind it stands another program
        command, *words = shlex.split(ours, comments=True)
        options = {
            word.partition("=")[0] for word in words if word.startswith("-")
        }
        assert options <= options_of(command), place


@cache
def options_of(command):
    helped = ullage(command, "--help")
    assert helped.status == 0, command
    return set(re.findall(r"(?<![\w-])--?[\w-]+", helped.text))


def test_targets_of_make_exist():
    known = re.findall(
        r"(?m)^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8")
    )
    for place, target in shown(r"(?m)^(?:\$ )?make ([\w-]+)"):
        assert target in known, place


def shown(pattern):
    """What a pattern finds in the console blocks of all pages, and where."""
    for page in PAGES:
        for block in blocks(page):
            if block.kind.startswith("console"):
                for found in re.findall(pattern, block.text):
                    yield f"{title(page)}, line {block.line}", found


TO_COME: set[str] = set()
"""Pages that are linked to and not written yet."""


def test_links_between_pages_lead_somewhere():
    for page in PAGES:
        links = re.findall(
            r"\]\((?!https?://|#)([^)#\s]+)", page.read_text(encoding="utf-8")
        )
        lost = {link for link in links if not (page.parent / link).exists()}
        assert lost <= TO_COME, title(page)


# What runs the pages is itself tested: on a page with one of each


PAGE = """
<!-- setup
kept = []
-->
```python
import openai
client = openai.OpenAI()
reply = client.chat.completions.create(messages=[])
kept.append(reply.choices[0].message.content)
```

```console checked
$ ullage --version
ullage, version …
$ ullage --help
Usage: ullage [OPTIONS] COMMAND [ARGS]...
…
```

```python
import asyncio
await asyncio.sleep(0)
assert kept == ["It is done."]
```
"""


def test_a_page_runs_in_order_and_in_one_set_of_names(reader):
    found = list(blocks_of(PAGE))
    assert [block.kind for block in found] == [
        "setup",
        "python",
        "console checked",
        "python",
    ]
    for block in found:
        if block.kind != "console checked":
            execute(block, PAGES[0], reader)
    assert reader["kept"] == ["It is done."]


def test_an_error_points_at_its_line(reader):
    (block,) = blocks_of("one\n\n```python\nx = 1\nx.y\n```\n")
    with pytest.raises(AttributeError) as caught:
        execute(block, PAGES[0], reader)
    assert caught.traceback[-1].lineno + 1 == 5


def test_three_dots_on_a_line_stand_for_any_lines():
    (_, first), (command, second) = commands(list(blocks_of(PAGE))[2])
    assert command == ["ullage", "--help"]
    assert like(second).fullmatch(
        "Usage: ullage [OPTIONS] COMMAND [ARGS]...\na\nb\n"
    )
    assert not like(second).fullmatch("Usage: something else\n")
    assert not like(first).fullmatch("ullage, version 0.1.0\n")
