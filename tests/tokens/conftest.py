"""Loads the vocabularies once, so that no single example of a property waits for them."""

import pytest
import quicktok

from ullage.tokens.exact import exact


@pytest.fixture(scope="session", autouse=True)
def vocabularies():
    for encoding in ("o200k_base", "cl100k_base"):
        exact(encoding).count("warm")
        quicktok.get_encoding(encoding).encode_ordinary("warm")
