"""Every module is pure, or an edge that says why: pyproject's contract and its table of edges."""

import ast
import tomllib
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
SRC = ROOT / "src"
TOOLS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))[
    "tool"
]
(CONTRACT,) = (
    contract
    for contract in TOOLS["importlinter"]["contracts"]
    if contract["name"] == "what decides does no I/O"
)
PURE, FORBIDDEN = (
    CONTRACT["source_modules"],
    set(CONTRACT["forbidden_modules"]),
)
EDGES = TOOLS["ullage"]["edges"]


def module_of(file):
    return ".".join(file.relative_to(SRC).with_suffix("").parts).removesuffix(
        ".__init__"
    )


MODULES = {module_of(file): file for file in sorted(SRC.rglob("*.py"))}


@cache
def imported(file):
    """The top names of what a module imports, wherever in it, and locks."""
    found = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found.update(alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            found |= {(node.module or "").partition(".")[0]} | (
                {node.module} & FORBIDDEN
            )
    return found


def is_in(module, rooms):
    return any(
        module == room or module.startswith(f"{room}.") for room in rooms
    )


def test_a_module_is_pure_or_an_edge_and_never_both():
    """A new one is named in pyproject.toml; a package that lists its names needs no I/O."""
    lists = {
        module
        for module, file in MODULES.items()
        if file.name == "__init__.py" and not is_in(module, EDGES)
    }
    assert [
        module for module in lists if imported(MODULES[module]) & FORBIDDEN
    ] == []
    named = {
        module: (is_in(module, PURE), is_in(module, EDGES))
        for module in {*MODULES} - lists
    }
    assert [
        module for module, (pure, edge) in named.items() if pure == edge
    ] == []


def test_an_edge_needs_what_it_is_an_edge_for():
    """One that imports nothing of the kind is pure."""
    for edge, why in EDGES.items():
        files = [
            file for module, file in MODULES.items() if is_in(module, [edge])
        ]
        assert any(imported(file) & FORBIDDEN for file in files), edge
        assert len(why) > 10, edge


def test_what_is_named_is_there():
    assert {*PURE, *EDGES} <= set(MODULES)


def test_what_a_socket_needs_is_in_the_proxies_alone():
    """Nothing in the library itself reaches for the network: models are the caller's."""
    network = {
        "socket",
        "ssl",
        "http",
        "urllib",
        "httpx",
        "requests",
        "aiohttp",
    }
    found = {
        name for name, file in MODULES.items() if imported(file) & network
    }
    proxies = [
        "ullage.doors.proxy",
        "ullage.doors.mcp.front",
        "ullage.doors.mcp.remote",
    ]
    assert found - {"ullage.tools.cli.proxy"} == {
        name for name in found if is_in(name, proxies)
    }
