"""An adapter without its framework says what to install."""

import importlib
import re
import tomllib
from pathlib import Path

import pytest

from ullage.integrations._needs import needs

EXTRAS = {
    "adk": "adk",
    "claude_agent_sdk": "claude-agent-sdk",
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
    assert {file.stem for file in files if not file.stem.startswith("_")} == set(EXTRAS)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert set(EXTRAS.values()) <= set(project["optional-dependencies"])


@pytest.mark.parametrize("name", EXTRAS)
def test_what_is_missing_is_told_with_what_to_install(name):
    said = rf"^[\w.]+ is not installed: pip install 'ullage\[{EXTRAS[name]}\]'$"
    try:
        importlib.import_module(f"ullage.integrations.{name}")
    except ModuleNotFoundError as error:
        missing = error
    else:
        pytest.skip("its framework is installed")
    assert re.match(said, str(missing))


def test_a_module_of_ours_that_is_missing_is_no_framework():
    with (
        pytest.raises(ModuleNotFoundError, match=r"^No module named 'ullage\.barrel'$"),
        needs("x"),
    ):
        importlib.import_module("ullage.barrel")
