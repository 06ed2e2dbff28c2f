"""What loads only for who asks for it: modules, not milliseconds (those: ``make bench-weight``)."""

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import ullage
from ullage.core.on_demand import names

SRC = Path(__file__).parents[2] / "src" / "ullage"
PACKAGES = sorted(
    file
    for file in SRC.rglob("__init__.py")
    if "on_demand import names" in file.read_text("utf-8")
)
SEVERAL = {"core", "policy", "session", "documents", "doors", "tools"}
"""The rooms that have packages within them."""
CLAUDE, GPT = "claude-opus-4-5", "gpt-4.1"
FIT = "ullage.Session({!r}{}).fit({{'messages': [{{'role': 'user', 'content': 'hi'}}]}})"


def loaded(code):
    """The modules that ``code`` loads in a process of its own."""
    code = f"import sys; before = {{*sys.modules}}\n{code}\nprint(*{{*sys.modules}} - before)"
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return set(done.stdout.split())


def rooms(modules):
    """The packages that modules of ours are in; of a room with several, those within it."""
    packages = set()
    for _, room, *within in (
        name.split(".") for name in modules if "ullage." in name
    ):
        packages.update(within[:1] if room in SEVERAL else [room])
    return packages


def foreign(modules):
    top = {name.partition(".")[0] for name in modules}
    return top - {"ullage", "typing_extensions"} - sys.stdlib_module_names


def module_of(file):
    return ".".join(file.relative_to(SRC.parent).parent.parts)


# The tables


@pytest.mark.parametrize("file", PACKAGES, ids=module_of)
def test_what_checkers_see_is_what_is_found(file):
    branch = next(
        node
        for node in ast.parse(file.read_text(encoding="utf-8")).body
        if isinstance(node, ast.If)
        and ast.unparse(node.test) == "TYPE_CHECKING"
    )
    seen = {
        alias.name: node.module for node in branch.body for alias in node.names
    }
    (call,) = (
        node
        for node in ast.walk(branch.orelse[0])
        if isinstance(node, ast.Call)
    )
    table = ast.literal_eval(call.args[1])
    assert seen == {
        name: home for home, listed in table.items() for name in listed.split()
    }
    package = importlib.import_module(module_of(file))
    assert all(getattr(package, name) is not None for name in seen)
    assert {*package.__all__} - {"__version__"} <= {*seen} <= {*dir(package)}
    modules = {path.stem for path in file.parent.iterdir()}
    elsewhere = {
        name for name, home in seen.items() if home != package.__name__
    }
    assert not elsewhere & modules, "importing the module would hide the name"


def test_a_name_that_is_not_there_is_no_attribute():
    with pytest.raises(
        AttributeError, match=r"module 'ullage' has no attribute 'Sesion'"
    ):
        _ = ullage.Sesion
    with pytest.raises(ImportError):
        from ullage import Sesion  # noqa: F401


def test_a_name_may_be_a_module_of_another_package():
    get, listing = names("ullage", {"ullage.wires": "convert rules"})
    assert get("rules") is importlib.import_module("ullage.wires.rules")
    assert listing()
    vars(ullage).pop("rules")
    with pytest.raises(ImportError):
        names(__name__, {"ullage.wires": "nothing"})[0]("nothing")


def test_a_name_is_looked_up_once():
    get, _ = names(__name__, {"ullage.core.errors": "ConfigError"})
    assert get("ConfigError") is globals().pop("ConfigError")


# The modules


def test_importing_the_package_loads_nothing_else():
    modules = loaded("import ullage")
    assert rooms(modules) == {"on_demand"}
    assert foreign(modules) == set()


@pytest.mark.parametrize(
    ("module", "others"),
    [
        ("ullage.core.errors", set()),
        ("ullage.stores.memory", {"errors", "values"}),
        ("ullage.stores.sqlite", {"errors", "history", "values"}),
        (
            "ullage.session.recall.dispatch",
            {"errors", "history", "stages", "values"},
        ),
        (
            "ullage.policy.stages.truncate",
            {"errors", "history", "redaction", "tokens", "values"},
        ),
    ],
)
def test_a_module_loads_only_the_rooms_it_stands_on(module, others):
    modules = loaded(f"import {module}")
    assert (
        rooms(modules) - {"contract", "locks", "on_demand", *rooms({module})}
        <= others
    )


def test_a_forwarder_that_cuts_keeps_and_recalls_loads_no_session_and_no_wire():
    modules = loaded(
        "import ullage.policy.stages.truncate, ullage.session.recall.dispatch, ullage.stores.sqlite"
    )
    assert not rooms(modules) & {
        "wires",
        "turn",
        "session",
        "presets",
        "spend",
        "summarise",
    }
    assert not modules & {
        "asyncio",
        "ullage.policy.stages.prune",
        "ullage.core.tokens.catalog",
    }


@pytest.mark.parametrize("model", [CLAUDE, GPT])
def test_a_fit_loads_neither_what_judges_nor_what_prices_nor_an_event_loop(
    model,
):
    modules = loaded(f"import ullage; {FIT.format(model, '')}")
    assert not modules & {
        "asyncio",
        "genai_prices",
        "click",
        "rich",
        "platformdirs",
    }
    assert not rooms(modules) & {"cli", "replay", "loop", "integrations"}


def test_a_proxy_on_a_file_loads_no_database_driver_and_no_page():
    pytest.importorskip("aiohttp")
    code = "from ullage.doors.proxy.tenants import secret_of\nfrom ullage.doors.proxy import server"
    modules = loaded(
        f"{code}\nimport tempfile\nsecret_of(tempfile.mkdtemp() + '/kept.db')"
    )
    assert not modules & {
        "psycopg",
        "psycopg_pool",
        "genai_prices",
        "ullage.tools.replay",
    }


@pytest.mark.parametrize("model", [CLAUDE, "gemini-2.5-pro", "qwen3-coder"])
def test_models_without_a_vocabulary_load_none(model):
    request = "{'messages': [{'role': 'user', 'content': 'what is here? ' * 20_000}]}"
    code = f"ullage.Session({model!r}, format='openai-chat').fit({request})"
    assert "toktok" not in foreign(loaded(f"import ullage; {code}"))


@pytest.mark.parametrize("model", [CLAUDE, GPT])
def test_of_a_wire_a_fit_loads_the_format_alone(model):
    """What converts, hides turns or stands behind HTTP loads for who asks for it."""
    of_wires = [
        name
        for name in loaded(f"import ullage; {FIT.format(model, '')}")
        if ".wires." in name
    ]
    modules = {
        name.rpartition(".")[2] for name in of_wires if name.count(".") == 3
    }
    assert modules <= {
        *(
            "wire",
            "blocks",
            "models",
            "format",
            "fields",
            "passages",
            "media",
            "usage",
        ),
        "_evidence",
    }
    assert not {"ullage.wires.http", "ullage.wires.hidden_turns"} & {*of_wires}


@pytest.mark.parametrize(
    ("code", "wanted"),
    [
        (FIT.format(GPT, ""), set()),
        (FIT.format(GPT, ", repair=True"), {"repair"}),
        ("ullage.Problem", {"rules"}),
        ("ullage.problems", {"rules"}),
    ],
    ids=("fit", "repair", "Problem", "problems"),
)
def test_rules_and_repair_load_for_who_asks_for_them(code, wanted):
    found = loaded(f"import ullage; {code}")
    of_wires = ("ullage.wires.repair.", "ullage.wires.rules.")
    assert {
        name.split(".")[2] for name in found if name.startswith(of_wires)
    } == wanted
