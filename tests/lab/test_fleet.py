import pytest

from lab import fleet
from tests.stores.postgres.server import is_there

pytestmark = pytest.mark.xdist_group("postgres")


@pytest.mark.skipif(
    not is_there(), reason="PostgreSQL is not installed (Debian: postgresql)"
)
def test_a_fleet_sends_what_one_worker_sends_whoever_is_killed():
    came = fleet.run(conversations=4, workers=3, kill_every=8, seed=7)
    assert came.turns == 4 * 14
    assert came.kills >= 6
    assert (came.differ, came.lost, came.deadlocks) == (0, 0, 0)
    assert came.breaks[0] == came.breaks[1] > 0
