import gc
import os
import time
from contextlib import closing

import pytest

import ullage
from tests.stores.contract import batch, output
from ullage.core.errors import ConfigError, StoreError
from ullage.documents.conversation import PostgresConversations
from ullage.stores import PostgresStore, open_store
from ullage.stores.postgres import connecting

pytestmark = pytest.mark.xdist_group("postgres")


NAME = "ullage-counted"


@pytest.fixture
def url(url):
    """The address, by which the connections of these tests are told from others."""
    return f"{url}?application_name={NAME}"


def connections(server):
    asked = f"SELECT count(*) FROM pg_stat_activity WHERE application_name = '{NAME}'"
    with server.connect() as db:
        return db.execute(asked).fetchone()[0]


def settled(server, wanted):
    """The number of connections, once it is the wanted one, or after a while."""
    until = time.monotonic() + 5
    while connections(server) != wanted and time.monotonic() < until:
        time.sleep(0.02)
    return connections(server)


def test_a_session_keeps_its_conversation_on_a_server(url):
    request = {
        "model": "gpt-4.1",
        "messages": [{"role": "user", "content": "Hello."}],
    }
    with ullage.Session("gpt-4.1", store=url) as session:
        view = session.fit(request)
        assert view["messages"] == request["messages"]
    with ullage.Session("gpt-4.1", store=url) as again:
        assert dict(again.fit(request)) == dict(view)


def test_stores_at_one_address_share_their_connections(server, url):
    stores = [open_store(url) for _ in range(6)]
    for store in stores:
        store.commit("t", [], [batch(b"k", 0, b"d")])
    assert (
        connections(server) <= 2
    )  # the one that is held ready, and the one that was wanted
    for store in stores[1:]:
        store.close()
    assert len(stores[0].find("t", [b"k"])) == 1
    stores[0].close()
    assert settled(server, 0) == 0


def test_a_store_that_is_forgotten_lets_go_of_its_connections(server, url):
    PostgresStore(url).find("t", [b"k"])
    gc.collect()
    assert settled(server, 0) == 0


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_fork_has_connections_of_its_own(server, url):
    store = PostgresStore(url)
    store.commit("t", [output("parent")], [])
    child = os.fork()
    if not child:
        try:
            store.commit("t", [output("child")], [])
            store.close()
            os._exit(0)
        finally:
            os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    assert {store.get("t", ref).text for ref in store.refs("t")} == {
        "parent",
        "child",
    }
    store.close()


@pytest.mark.parametrize(
    ("address", "why"),
    [
        (
            "postgresql://ullage:hunter2@127.0.0.1:1/postgres",
            "cannot be reached",
        ),
        (
            "{server.url}_that_is_not_there",
            "cannot be reached|no such database",
        ),
    ],
)
def test_what_cannot_be_opened_says_why_and_no_password(server, address, why):
    with pytest.raises(StoreError, match=why) as caught:
        PostgresStore(address.format(server=server), timeout_s=1)
    shown = f"{caught.value} {caught.value.__cause__}"
    assert "hunter2" not in shown
    assert "127.0.0.1" not in shown


def test_what_is_no_address_is_told(url):
    with (
        closing(PostgresStore(url)) as store,
        pytest.raises(ConfigError, match="is no address"),
    ):
        PostgresConversations(store)


def test_what_the_client_refuses_is_no_server_that_cannot_be_reached(url):
    with (
        closing(PostgresStore(url)) as store,
        pytest.raises(StoreError) as caught,
    ):
        store.agreed("a\0name", b"value")
    assert "cannot be reached" not in str(caught.value)
    assert "text with a NUL" in str(caught.value)


def test_an_address_that_cannot_be_read_is_not_shown():
    with pytest.raises(ConfigError, match="postgresql://user@host") as caught:
        PostgresStore("postgresql://a:hunter2@[b")
    assert "hunter2" not in str(caught.value)


def test_a_disk_that_is_full_is_told_apart():
    full = connecting.store_error("commit", connecting.errors.DiskFull())
    assert isinstance(full, ullage.core.errors.StoreFull)
    assert "Free some space" in str(full)
