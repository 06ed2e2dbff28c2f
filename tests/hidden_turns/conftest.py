"""Each wire, streamed and not."""

import pytest

from ullage.wires import FORMATS

MODES = [
    (format, streamed) for format in FORMATS for streamed in (False, True)
]


@pytest.fixture(
    params=MODES, ids=[f"{name}{'-streamed' * is_}" for name, is_ in MODES]
)
def mode(request):
    return request.param
