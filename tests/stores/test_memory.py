from tests.stores.contract import output
from ullage.stores import MemoryStore
from ullage.testing import StoreContract


class TestMemory(StoreContract):
    def open(self):
        return MemoryStore(clock=self.clock)


def test_the_string_kept_is_the_string_given():
    text = "x" * 1_000
    store = MemoryStore()
    store.commit("t", [output(text)], [])
    assert store.get("t", store.refs("t")[0]).text is text


def test_two_stores_share_nothing():
    one, two = MemoryStore(), MemoryStore()
    one.commit("t", [output("x")], [])
    assert two.refs("t") == ()
