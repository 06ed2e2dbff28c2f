"""An adapter without its framework says what to install."""

import importlib
import re
import tomllib
from pathlib import Path

import pytest

from ullage.core.installing import install_remedy
from ullage.integrations import _needs
from ullage.integrations._needs import OLDEST, WITHOUT_ADAPTER, needs

EXTRAS = {
    "adk": "adk",
    "claude_agent_sdk": "claude-agent-sdk",
    "hermes": "hermes",
    "inspect_ai": "inspect",
    "langchain": "langchain",
    "litellm": "litellm",
    "mcp_tools": "mcp-tools",
    "openai_agents": "openai-agents",
    "opentelemetry": "opentelemetry",
    "pydantic_ai": "pydantic-ai",
    "strands": "strands",
}
ROOT = Path(__file__).parents[2]


def test_every_adapter_is_here_and_its_extra_exists():
    files = (ROOT / "src/ullage/integrations").iterdir()
    assert {
        file.stem for file in files if not file.stem.startswith("_")
    } == set(EXTRAS)
    project = tomllib.loads(
        (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    )["project"]
    assert set(EXTRAS.values()) <= set(project["optional-dependencies"])


def test_the_page_of_the_frameworks_names_each_extra_and_its_oldest_release():
    page = (ROOT / "docs/frameworks.md").read_text(encoding="utf-8")
    told = dict(re.findall(r"\| `([a-z-]+)` \| ([\d.]+) \|", page))
    apart = {"mcp-tools", "opentelemetry"}  # no frameworks of agents
    oldest = {extra: release for extra, (_, release) in OLDEST.items()}
    assert told == {key: oldest[key] for key in oldest.keys() - apart}


@pytest.mark.parametrize("name", EXTRAS)
def test_what_is_missing_is_told_with_what_to_install(name):
    said = rf"^[\w.]+ is not installed: {re.escape(install_remedy(EXTRAS[name]))}$"
    try:
        importlib.import_module(f"ullage.integrations.{name}")
    except ModuleNotFoundError as error:
        missing = error
    else:
        pytest.skip("its framework is installed")
    assert re.match(said, str(missing))


def test_a_module_of_ours_that_is_missing_is_no_framework():
    with (
        pytest.raises(
            ModuleNotFoundError, match=r"^No module named 'ullage\.barrel'$"
        ),
        needs("adk"),
    ):
        importlib.import_module("ullage.barrel")


def test_the_oldest_release_is_the_one_that_the_extra_asks_for():
    project = tomllib.loads(
        (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    )["project"]
    asked = {
        extra: project["optional-dependencies"][extra]
        for extra in EXTRAS.values()
    }
    assert OLDEST.keys() == asked.keys()
    for extra, (framework, oldest) in OLDEST.items():
        assert f"{framework}>={oldest}" in asked[extra], extra


def importing(extra, installed, monkeypatch):
    """Import an adapter whose framework says that it is of this version."""
    versions = {OLDEST[extra][0]: installed}
    monkeypatch.setattr(_needs, "version", versions.__getitem__)
    with needs(extra):
        return True


@pytest.mark.parametrize("extra", OLDEST)
def test_one_that_is_too_old_is_named_with_the_version_that_is_needed(
    extra, monkeypatch
):
    framework, oldest = OLDEST[extra]
    with pytest.raises(ImportError) as raised:
        importing(extra, "0.1.9", monkeypatch)
    remedy, _, other_way = str(raised.value).partition(". To keep 0.1.9, ")
    assert remedy == (
        f"{framework} 0.1.9 is installed, and the adapter needs {oldest} or newer: "
        f"pip install --upgrade '{framework}>={oldest}'"
    )
    assert other_way == WITHOUT_ADAPTER.get(extra, "")


def test_an_older_release_of_what_asks_models_has_another_way():
    """The upgrade that the adapter needs may break the application that is there."""
    assert OLDEST.keys() - WITHOUT_ADAPTER.keys() == {
        "mcp-tools",
        "opentelemetry",
    }
    for way in WITHOUT_ADAPTER.values():
        assert "ullage proxy" in way or "ullage.wrap(" in way


def test_the_oldest_and_all_that_are_newer_are_taken(monkeypatch):
    for installed in (
        "2.13",
        "2.13.0",
        "2.13.0rc1",
        "2.13.1.dev3+local",
        "3.0",
        "10.0",
        "1!2.13",
    ):
        assert importing("adk", installed, monkeypatch), installed
    for installed in ("2.12.9", "2.9", "1.99", "0.9"):
        with pytest.raises(ImportError):
            importing("adk", installed, monkeypatch)


def test_one_of_a_version_that_nobody_knows_is_tried(monkeypatch):
    """It may be built from a checkout, or be part of something else."""

    def unknown(framework):
        raise _needs.PackageNotFoundError(framework)

    monkeypatch.setattr(_needs, "version", unknown)
    with needs("adk"):
        pass
