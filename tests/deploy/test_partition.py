"""Proxies on machines of their own before one server: wires are pulled, workers are killed."""

from urllib.parse import urlsplit

import pytest

from tests.deploy.machines import machines, why_not
from tests.proxy.started import started
from tests.proxy.upstream import ask, until, upstream
from tests.stores.postgres.server import Server, is_there
from tests.stores.postgres.test_proxies import (
    KEY,
    PATH,
    SETTINGS,
    sent_by_one,
    turns,
)

pytestmark = [
    pytest.mark.xdist_group("postgres"),
    pytest.mark.skipif(
        not is_there(),
        reason="PostgreSQL is not installed (Debian: postgresql)",
    ),
]


@pytest.fixture
def server():
    server = Server(listen_addresses="*")
    with (server.folder / "data" / "pg_hba.conf").open("a") as access:
        access.write("host all all 10.214.0.0/16 trust\n")
    with server.connect() as db:
        db.execute("SELECT pg_reload_conf()")
    yield server
    server.stop()


def proxy_on(machine, there, server):
    """A proxy of a machine, which reaches its provider by one wire and the server by the other."""
    port = urlsplit(there.url).port
    provider = f"http://{machine.here(213)}:{port}"
    names = ("anthropic", "openai", "gemini")
    return started(
        there,
        f"--listen={machine.address}:8787",
        *(f"--upstream={name}={provider}" for name in names),
        f"--store=postgresql://ullage@{machine.here(214)}:{server.port}/postgres",
        within=machine.within,
        **SETTINGS,
    )


def test_a_partition_and_a_killed_worker_change_no_byte_of_what_is_fitted(
    server,
):
    if why := why_not():
        pytest.skip(why)
    wanted, bodies = sent_by_one(), list(turns(14))
    with (
        machines(2) as (a, b),
        upstream(host="0.0.0.0") as there,
        proxy_on(a, there, server) as one,
    ):

        def is_fitted(proxy, n):
            _, headers, _ = ask(proxy.url, "POST", PATH, bodies[n], KEY)
            return headers["X-Ullage"] == "fitted"

        def fitted(proxy, n):
            status, headers, _ = ask(proxy.url, "POST", PATH, bodies[n], KEY)
            assert (status, headers["X-Ullage"]) == (200, "fitted"), n
            assert there.requests[-1].body == wanted[n], n

        with proxy_on(b, there, server) as two:
            for n in range(6):
                fitted((one, two)[n % 2], n)
            a.pull(214)
            status, headers, _ = ask(one.url, "POST", PATH, bodies[6], KEY)
            assert (status, headers["X-Ullage"]) == (200, "passed; store")
            assert there.requests[-1].body == bodies[6], (
                "it went on as it came"
            )
            assert ask(one.url, "GET", "/_ullage/health")[0] == 200
            fitted(two, 6)
            two.process.kill()
        with proxy_on(b, there, server) as two:
            fitted(two, 7)
            a.plug(214)
            # The server is tried again some seconds after it could not be reached.
            until(lambda: is_fitted(one, 7))
            for n in range(8, 14):
                fitted((one, two)[n % 2], n)
