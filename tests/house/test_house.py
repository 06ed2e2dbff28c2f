"""The house itself: what its rules say of its own files."""

import ast
import re
import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path

import pytest

import ullage
from ullage.core import errors

ROOT = Path(__file__).parents[2]
SRC = ROOT / "src" / "ullage"
FILES = sorted(SRC.rglob("*.py"))
pytestmark = pytest.mark.xdist_group("house")  # every file is parsed once
FILE_LINES, FUNCTION_LINES = 680, 65
"""The most a file may have, and a function without its docstring."""

APART = {
    "ullage.integrations.adk": "google.adk",
    "ullage.integrations.claude_agent_sdk": "claude_agent_sdk",
    "ullage.integrations.hermes": "hermes_cli",
    "ullage.integrations.inspect_ai": "inspect_ai",
    "ullage.integrations.langchain": "langchain",
    "ullage.integrations.litellm": "litellm",
    "ullage.integrations.openai_agents": "agents",
    "ullage.integrations.pydantic_ai": "pydantic_ai",
    "ullage.integrations.strands": "strands",
}
"""Packages for what is not in this environment: they are tried where it is (make test-adk)."""

UNDOCUMENTED = {
    "stores/_base.py AsyncStore": "one line says it all: methods of `Store`, awaited",
    "tools/replay/readers/_claude_code_build.py LogLine": "fields of a log line, named as in the "
    "log",
}
UNTESTED = {
    "ullage.tools.cli.check": "a command, loaded when called: tests/cli",
    "ullage.tools.cli.completion": "the same",
    "ullage.tools.cli.doctor": "a command, loaded when called: tests/proxy/test_doctor.py",
    "ullage.tools.cli.fit": "a command, loaded when called: tests/cli",
    "ullage.tools.cli.forget": "a command, loaded when called: tests/cli",
    "ullage.tools.cli.gc": "a command, loaded when called: tests/cli",
    "ullage.tools.cli.grep": "a command, loaded when called: tests/cli",
    "ullage.tools.cli.inspect": "a command, loaded when called: tests/cli",
    "ullage.tools.cli.mcp": "a command, loaded when called: tests/mcp",
    "ullage.tools.cli.read": "a command, loaded when called: tests/cli",
    "ullage.tools.cli.watch": "a command, loaded when called: tests/watch",
    "ullage.doors.proxy.fitting": "what is fitted is asked of a whole proxy: "
    "tests/proxy/test_fitting.py",
    "ullage.doors.proxy.spending": "and what it counts: tests/proxy/test_spending.py",
    "ullage.doors.exchange.claiming": "the same",
    "ullage.doors.exchange.spending": "the same",
    "ullage.doors.exchange.stored_exchange": "asked of a whole door: "
    "tests/hidden_turns/test_stored.py",
    "ullage.doors.proxy.unsent": "and what does not: tests/proxy/test_relay.py",
    "ullage.doors.proxy.relay": "so is what passes: tests/proxy/test_relay.py",
    "ullage.doors.proxy.client_request": "the same",
    "ullage.tools.replay.report.live": "so is each page: tests/proxy/test_pages.py",
    "ullage.documents.conversation.opening": "stores by their addresses: tests/cli/test_forget.py",
    "ullage.stores.objects.bucket": "what is asked of a bucket: tests/stores/objects",
    "ullage.stores.objects.in_sqlite": "what a file keeps of it: the same",
    "ullage.stores.objects.rows": "rows whose bodies are there: the same",
    "ullage.stores.postgres.asking": "what is asked of a server: tests/stores/postgres",
    "ullage.stores.postgres.leases": "the same",
    "ullage.stores.postgres.outputs": "the same",
    "ullage.stores.postgres.records": "the same",
    "ullage.stores.postgres.spending": "the same: tests/stores/postgres/test_budgets.py",
    "ullage.stores.postgres.team_spending": "the same: tests/stores/test_spending.py",
    "ullage.core.turn.arrival": "tests/session/test_upgrades.py",
    "ullage.core.turn.held_elsewhere": "tests/turn/test_threads.py",
    "ullage.core.turn.ledger_lookup": "tests/session/test_workers.py",
    "ullage.core.turn.nesting": "tests/turn/test_incoming.py",
    "ullage.core.turn.reporting": "tests/turn/test_checks.py",
    "ullage.core.turn.observing": "what a reply reports: tests/spend and tests/session",
    "ullage.core.turn.recall_offer": "tests/session/test_joining.py",
    "ullage.core.turn.resolution": "tests/session/test_upgrades.py",
    "ullage.session.core": "what both sessions share: every test of a session",
    "ullage.session.changes": "the same",
    "ullage.session.provider.passing": "the same: tests/session/test_unfitted.py",
    "ullage.session.replies": "the same",
    "ullage.session.turns": "the same",
    "ullage.session.spend.teams.account": "budgets of teams: tests/spend/test_teams.py",
    "ullage.session.spend.teams.call": "the same",
}


def name_of(file):
    return file.relative_to(SRC).as_posix()


def module_of(file):
    parts = file.relative_to(SRC.parent).with_suffix("").parts
    return ".".join(parts).removesuffix(".__init__")


@pytest.fixture(scope="module")
def trees():
    return {
        file: ast.parse(file.read_text(encoding="utf-8")) for file in FILES
    }


def functions(tree):
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return (node for node in ast.walk(tree) if isinstance(node, kinds))


def public(tree, path=""):
    """Every public class and function of a module, by its path in it; overloads are one."""
    for node in tree.body:
        if isinstance(
            node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
        ):
            overload = any(
                ast.unparse(each) == "overload" for each in node.decorator_list
            )
            if node.name.startswith("_") or overload:
                continue
            yield f"{path}{node.name}", node
            if isinstance(node, ast.ClassDef):
                yield from public(node, f"{path}{node.name}.")


# The public surface


def test_the_public_surface_is_sorted_complete_and_importable():
    assert list(ullage.__all__) == sorted(set(ullage.__all__))
    assert all(hasattr(ullage, name) for name in ullage.__all__)


@pytest.mark.parametrize("package", ["ullage", *APART])
def test_what_a_module_lists_it_has(package):
    if needed := APART.get(package):
        pytest.importorskip(needed, reason=f"{needed} is not installed")
    apart = () if needed else tuple(APART)
    names = (
        name
        for name in map(module_of, FILES)
        if f"{name}.".startswith(f"{package}.")
    )
    for module in (
        import_module(name) for name in names if not name.startswith(apart)
    ):
        listed = getattr(module, "__all__", [])
        assert [name for name in listed if not hasattr(module, name)] == [], (
            module
        )
        assert len(listed) == len(set(listed)), module


def test_the_version_is_told_once():
    project = tomllib.loads(
        (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    )["project"]
    assert project["version"] == ullage.__version__


# What is written down


def test_every_module_says_what_it_is(trees):
    """Only an empty package marker may not."""
    silent = [
        file for file, tree in trees.items() if not ast.get_docstring(tree)
    ]
    assert [name_of(file) for file in silent if file.stat().st_size] == []


def test_everything_public_is_documented(trees):
    bare = [
        f"{name_of(file)} {path}"
        for file, tree in trees.items()
        for path, node in public(tree)
        if not ast.get_docstring(node)
    ]
    assert [
        path for path in bare if not path.startswith(tuple(UNDOCUMENTED))
    ] == []


def test_the_errors_are_those_of_the_drawing():
    drawn, above = {}, []
    for line in errors.__doc__.splitlines():
        found = re.match(r"    ([ │├└─]*)(\w+)", line)
        if found and issubclass(
            getattr(errors, found[2], int), errors.UllageError
        ):
            depth = len(found[1]) // 4
            above = [*above[:depth], found[2]]
            drawn[found[2]] = above[depth - 1] if depth else "Exception"
    kinds = (kind for kind in vars(errors).values() if isinstance(kind, type))
    real = {
        kind.__name__: kind.__base__.__name__
        for kind in kinds
        if issubclass(kind, Exception)
    }
    assert drawn == real
    assert {name for name in ullage.__all__ if name in real} == set(real)


# One sitting


def test_a_file_is_read_in_one_sitting():
    assert [
        name_of(file) for file in FILES if lines_of(file) > FILE_LINES
    ] == []


def test_a_function_is_seen_at_once(trees):
    found = (
        (file, node)
        for file, tree in trees.items()
        for node in functions(tree)
    )
    long = [
        f"{name_of(file)} {node.name}"
        for file, node in found
        if height(node) > FUNCTION_LINES
    ]
    assert long == []


def lines_of(file):
    return len(file.read_text(encoding="utf-8").splitlines())


def height(function):
    """The lines of a function without its docstring."""
    docstring = (
        function.body[0] if ast.get_docstring(function, clean=False) else None
    )
    docstring_lines = (
        docstring.end_lineno - docstring.lineno + 1 if docstring else 0
    )
    return function.end_lineno - function.lineno + 1 - docstring_lines


# Modules and their tests


def test_every_module_has_a_test_that_imports_it():
    tested = set()
    for file in (ROOT / "tests").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            tested.update(_imported(node))
    wanted = {module_of(file) for file in FILES if file.name != "__init__.py"}
    wanted = {name for name in wanted if not name.startswith("ullage.wires.")}
    private = {
        name for name in wanted if name.rpartition(".")[2].startswith("_")
    }
    assert wanted - private - tested == set(UNTESTED)
    for name in private - tested:
        package = name.rpartition(".")[0]
        assert package in tested | set(UNTESTED), (
            f"{name} is reached through nothing tested"
        )


def _imported(node):
    """The modules of ours that an import reaches: by name, or where a name comes from."""
    if isinstance(node, ast.Import):
        yield from (
            alias.name
            for alias in node.names
            if alias.name.startswith("ullage")
        )
    elif (
        isinstance(node, ast.ImportFrom)
        and (node.module or "").split(".")[0] == "ullage"
    ):
        yield node.module
        if node.module.startswith(tuple(APART)):
            return
        module = import_module(node.module)
        for alias in node.names:
            value = getattr(module, alias.name, None)
            yield (
                getattr(value, "__module__", None)
                or f"{node.module}.{alias.name}"
            )
            yield getattr(value, "__name__", "")


# Importing


WATCHED = """
import sys
seen = []
def watch(event, args):
    if event.startswith(("socket.", "sqlite3.")) or event in ("os.mkdir", "os.rename", "os.remove"):
        seen.append(event)
    if event == "open" and isinstance(args[1], str) and set(args[1]) & set("wax+"):
        seen.append(f"open {args[0]}")
sys.addaudithook(watch)
from ullage import *
print(seen)
print(sorted({name.split(".")[0] for name in sys.modules}))
"""
HEAVY = {
    *(
        "toktok",
        "genai_prices",
        "rich",
        "click",
        "pydantic",
        "httpx",
        "httpx2",
        "aiohttp",
    ),
    *("anthropic", "openai", "numpy", "requests"),
}


def _bare_python(code):
    return subprocess.run(
        [sys.executable, "-B", "-c", code],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    ).stdout


def test_importing_loads_nothing_heavy_and_touches_nothing():
    seen, modules = map(ast.literal_eval, _bare_python(WATCHED).splitlines())
    assert seen == []
    assert HEAVY & set(modules) == set()


# What is handed out


def committed():
    """The text files that git would hand out; all but build products where git is not there."""
    git = ["git", "-C", str(ROOT), "ls-files", "-z"]
    try:
        names = subprocess.run(
            git, capture_output=True, check=True, timeout=60
        ).stdout.split(b"\0")
        files = [ROOT / name.decode() for name in names if name]
    except (OSError, subprocess.CalledProcessError):
        tops = ("src", "tests", "docs", "demo", "lab")
        files = [file for top in tops for file in (ROOT / top).rglob("*")]
        files += [
            file for file in ROOT.iterdir() if not file.name.startswith(".")
        ]
    return [
        file
        for file in files
        if file.is_file() and "__pycache__" not in file.parts
    ]


def test_no_committed_file_is_a_symbolic_link():
    """A link to a folder of one machine is broken in every other clone."""
    listed = subprocess.run(
        ["git", "-C", str(ROOT), "ls-files", "--stage"],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    ).stdout
    links = [line for line in listed.splitlines() if line.startswith("120000")]
    assert links == []


def text_of(file):
    try:
        return file.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return ""


def test_the_lock_has_a_hash_for_every_entry_and_no_address():
    text = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    assert "://" not in text
    assert " @ " not in text
    assert not re.search(r"(?m)^-", text)
    entries = re.split(r"(?m)^(?=\S)", text.replace("\\\n", " "))
    named = [
        entry
        for entry in entries
        if entry.strip() and not entry.startswith("#")
    ]
    assert len(named) > 20
    for entry in named:
        assert re.match(
            r"[\w.\-]+(\[[\w,]+\])?==\S+ .*--hash=sha256:[0-9a-f]{64}",
            entry,
            re.DOTALL,
        )


def test_what_is_locked_is_installed_without_a_look_at_what_else_there_is():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    locked = [
        line for line in makefile.splitlines() if "--require-hashes" in line
    ]
    assert locked
    assert [line for line in locked if "--no-deps" not in line] == []


TELLING = (
    r"/(home|Users)/\w+/",
    r"(?<![\w.])/root/",
    r"[A-Z]:\\+Users\\",
    r"--(extra-)?index-url",
    r"https?://[^\s)\"']*/simple\b",
    "files\\.python" + "hosted",
)


def test_no_file_tells_of_a_machine_or_an_index():
    telling = re.compile("|".join(TELLING))
    files = [file for file in committed() if file != Path(__file__)]
    found = ((file, telling.search(text_of(file))) for file in files)
    assert [
        f"{file.relative_to(ROOT).as_posix()}: {hit[0]}"
        for file, hit in found
        if hit
    ] == []
