"""What every adapter takes for granted of the recall tools, whatever the policy.

The frameworks themselves are tried in environments of their own, one in each run of the CI: this
stands for the others when a policy or its tools change.
"""

import re

import pytest

from ullage.documents import NAMES
from ullage.session.recall.tools import recall_tools

EVERY = [(policy, tool) for policy in NAMES for tool in recall_tools(policy)]
IDS = [f"{policy}-{tool.name}" for policy, tool in EVERY]
TOOLS = pytest.mark.parametrize("tool", [tool for _, tool in EVERY], ids=IDS)


@TOOLS
def test_a_name_is_one_that_every_provider_takes_also_behind_an_mcp_server(
    tool,
):
    assert re.fullmatch(
        r"[a-zA-Z_][a-zA-Z0-9_-]{0,63}", f"mcp__ullage__{tool.name}"
    )
    assert tool.description


@TOOLS
def test_arguments_are_plain_values_that_every_framework_can_declare(tool):
    schema = tool.parameters
    assert set(schema) <= {
        "type",
        "properties",
        "required",
        "additionalProperties",
    }
    assert set(schema.get("required", ())) <= set(schema["properties"])
    for declared in schema["properties"].values():
        assert set(declared) <= {
            "type",
            "description",
            "default",
            "minimum",
            "maximum",
            "enum",
        }
        assert declared["type"] in ("string", "integer", "boolean", "number")


@pytest.mark.parametrize("policy", NAMES)
def test_one_of_a_policys_tools_opens_an_output_by_its_ref_alone(policy):
    assert any(
        len(tool.parameters.get("required", ())) <= 1
        and tool.parameters["properties"]
        for tool in recall_tools(policy)
    )
