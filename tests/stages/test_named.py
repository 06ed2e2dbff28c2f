"""Policies by name: found without what is above a session being imported from below it."""

import subprocess
import sys
from typing import get_args

import pytest

from ullage import ConfigError, Policy, Session, documents
from ullage.policy.stages.named import NAMES, PRESETS, PolicyName, preset


@pytest.mark.parametrize("name", NAMES)
def test_every_name_is_a_policy(name):
    policy = preset(name)
    assert isinstance(policy, Policy)
    assert Session("gpt-4.1", policy=name).settings.policy.name == policy.name


def test_the_names_are_those_that_type_checkers_know_and_that_have_settings():
    assert get_args(PolicyName) == NAMES
    assert {*PRESETS} == {*documents._PRESETS}
    assert documents.NAMES == NAMES


def test_a_name_that_nobody_has_is_told_with_those_there_are():
    with pytest.raises(
        ConfigError, match=r"'treelayer' is not known.*three_layer"
    ):
        Session("gpt-4.1", policy="treelayer")
    with pytest.raises(ConfigError, match=r"'treelayer' is not known"):
        documents.load("treelayer", {})
    with pytest.raises(ConfigError, match="default has no settings"):
        documents.load("default", {})


def test_a_session_under_the_default_loads_no_preset():
    code = "import sys, ullage; ullage.Session('gpt-4.1'); print('ullage.documents' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "False\n"
