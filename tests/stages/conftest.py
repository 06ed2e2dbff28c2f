import pytest

pytest.register_assert_rewrite("tests.stages.conversations")
