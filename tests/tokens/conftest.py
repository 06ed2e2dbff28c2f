"""Loads the vocabularies once, so that no single example of a property waits for them."""

import importlib.util

import pytest

from ullage.core.tokens.exact import exact


@pytest.fixture(scope="session", autouse=True)
def vocabularies():
    for encoding in ("o200k_base", "cl100k_base"):
        exact(encoding).count("warm")
        if importlib.util.find_spec("quicktok") is not None:
            importlib.import_module("quicktok").get_encoding(
                encoding
            ).encode_ordinary("warm")
