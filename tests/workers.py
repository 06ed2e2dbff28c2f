"""The workers of a run and who gives them their tests: with less to tell, and to look through.

Eleven thousand tests take a few milliseconds each, so what xdist does for one of them counts.
"""

from xdist.scheduler import LoadGroupScheduling

__all__ = ["Scheduling", "tell_less"]


class _Numbered(list):
    """A list whose members are all different, and are found at once."""

    def __init__(self, members):
        super().__init__(members)
        self._numbers = {member: number for number, member in enumerate(self)}

    def index(self, member):
        return self._numbers[member]


class Scheduling(LoadGroupScheduling):
    """As ``--dist loadgroup``, which looks through all that was done after each test."""

    def add_node_collection(self, node, collection):
        super().add_node_collection(node, collection)
        if node in self.registered_collections:
            self.registered_collections[node] = _Numbered(
                self.registered_collections[node]
            )

    def mark_test_complete(self, node, item_index, duration=0):
        scope = self._split_scope(
            self.registered_collections[node][item_index]
        )
        super().mark_test_complete(node, item_index, duration)
        if all(self.assigned_work[node][scope].values()):
            del self.assigned_work[node][scope]


def tell_less(worker):
    """Has a worker tell of a test what counts and is shown: one message in the place of five.

    Args:
        worker: xdist's plugin in the worker.
    """
    tell = worker.sendevent

    def tell_what_is_shown(name, **what):
        if name not in ("logstart", "logfinish") and not _is_nothing(
            name, what
        ):
            tell(name, **what)

    worker.sendevent = tell_what_is_shown


def _is_nothing(name, what):
    """Whether it is that a test was set up, or ended, and nothing was wrong or printed then."""
    if name != "testreport":
        return False
    report = what["data"]
    return (report["when"], report["outcome"], report["sections"]) in (
        ("setup", "passed", []),
        ("teardown", "passed", []),
    )
