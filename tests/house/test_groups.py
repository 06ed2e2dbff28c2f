"""Tests that share a server or a browser are given to one worker: else each starts its own."""

import pytest


@pytest.mark.xdist_group("here")
def test_a_group_is_known_to_whoever_deals_out_the_tests(request):
    if not getattr(request.config.option, "loadgroup", False):
        pytest.skip("the tests are not dealt out by groups (make test does)")
    assert request.node.nodeid.endswith("@here")
