"""The runbook of docs/operate.md, step by step, on real proxies and real stores."""

import configparser
import hashlib
import json
import re
import shlex
import shutil
import signal
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path

import pytest

from tests.cli.terminal import ullage
from tests.exchange.test_joining import body
from tests.proxy.started import started
from tests.proxy.upstream import ask, proxy, settle, upstream
from tests.session.test_joining import steps
from tests.stores.postgres.server import Server, is_there, program
from ullage.doors.proxy.config import AccessSettings, ProxyLimits
from ullage.stores import SqliteStore
from ullage.tools.cli.proxy import command as proxy_command

PATH = "/anthropic/v1/messages"
TURNS = steps(4)
NOTE = b"Never touch main."
OPERATE = (Path(__file__).parents[2] / "docs" / "operate.md").read_text()


def digest(text):
    return hashlib.sha256(text.encode()).hexdigest()


def send(url, count, key="key of anna"):
    """A conversation's request after so many turns: its status."""
    raw = json.dumps(body("anthropic", TURNS[:count])).encode()
    headers = {"Content-Type": "application/json", "x-api-key": key}
    status = ask(url, "POST", PATH, raw, headers)[0]
    settle(url)
    return status


def sent_next(store, key="key of anna", **tenants):
    """What a proxy on a store sends for the conversation's next turn."""
    named = {name: [digest(k) for k in keys] for name, keys in tenants.items()}
    settings = {"tenant": None, "tenants": named, "store": str(store)}
    with upstream() as there, proxy(there, **settings) as url:
        assert send(url, len(TURNS), key) == 200
        return there.requests[-1].body


def begun(store, key="key of anna", **tenants):
    """A conversation of some turns is under way, and its user wrote a note that stands in it."""
    named = {name: [digest(k) for k in keys] for name, keys in tenants.items()}
    settings = {"tenant": None, "tenants": named, "store": str(store)}
    with upstream() as there, proxy(there, **settings) as url:
        for count in range(len(TURNS)):
            assert send(url, count, key) == 200
        conversation = json.loads(ask(url, path="/_ullage/state")[2])
    assert conversation["conversations"]
    for tenant in tenants:
        words = ("note", NOTE.decode(), "--store", store, "--tenant", tenant)
        assert ullage(*words).status == 0


def tenant_in(store):
    """The one tenant that a file has, which is made of a credential."""
    with closing(sqlite3.connect(store)) as db:
        ((tenant,),) = db.execute("SELECT DISTINCT tenant FROM records")
    return tenant.decode()


# ── back up, restore ─────────────────────────────────────────────────────────────────────


def test_a_copy_of_a_file_goes_on_with_the_secret_beside_it(tmp_path):
    """Without it, every credential is a new tenant."""
    store, copy = tmp_path / "kept.db", tmp_path / "copy.db"
    begun(store)
    words = ("note", NOTE.decode(), "--store", store)
    assert ullage(*words, "--tenant", tenant_in(store)).status == 0
    (command,) = [
        line for line in OPERATE.splitlines() if "VACUUM INTO" in line
    ]
    sql = command[command.index("VACUUM") : command.rindex('"')]
    with closing(sqlite3.connect(store)) as db:
        db.execute(sql.replace("copy.db", str(copy)))
    assert "cp kept.db.secret copy.db.secret" in command
    shutil.copy(f"{store}.secret", f"{copy}.secret")
    wanted = sent_next(store)
    assert NOTE in wanted
    assert sent_next(copy) == wanted
    bare = tmp_path / "bare.db"
    shutil.copy(copy, bare)
    assert NOTE not in sent_next(bare)


@pytest.fixture
def server():
    server = Server()
    yield server
    server.stop()


@pytest.mark.xdist_group("postgres")
@pytest.mark.skipif(
    not is_there() or program("pg_dump") is None,
    reason="PostgreSQL is not installed (Debian: postgresql)",
)
def test_a_dump_of_the_server_goes_on_as_the_server_does(server, tmp_path):
    url = server.url
    anna = {"anna": ["key of anna"]}
    begun(url, **anna)
    dump = tmp_path / "ullage.dump"
    words = ("--format=custom", "--schema=ullage")
    assert f"pg_dump {' '.join(words)} --file=" in OPERATE
    made = [program("pg_dump"), *words, f"--file={dump}", url]
    subprocess.run(made, check=True)
    with server.connect() as db:
        db.execute("CREATE DATABASE restored")
    restored = f"{url.rpartition('/')[0]}/restored"
    assert "pg_restore --dbname=" in OPERATE
    subprocess.run(
        [program("pg_restore"), f"--dbname={restored}", str(dump)], check=True
    )
    wanted = sent_next(url, **anna)
    assert NOTE in wanted
    assert sent_next(restored, **anna) == wanted


# ── keys, tokens ─────────────────────────────────────────────────────────────────────────


def test_a_key_is_rotated_in_three_steps(tmp_path):
    store = tmp_path / "kept.db"
    old, new = "key of anna", "new key of anna"
    begun(store, old, anna=[old])
    wanted = sent_next(store, old, anna=[old, new])
    assert NOTE in wanted
    assert sent_next(store, new, anna=[old, new]) == wanted
    assert sent_next(store, new, anna=[new]) == wanted
    assert NOTE not in sent_next(store, old, anna=[new]), "it is nobody's"


def test_the_token_of_the_pages_is_rotated_by_a_restart(tmp_path):
    def status(url, token):
        headers = {"Authorization": f"Bearer {token}"}
        return ask(url, path="/_ullage/state", headers=headers)[0]

    for token, former in (("one", "zero"), ("two", "one")):
        access = AccessSettings(token_sha256=digest(token))
        settings = {"access": access, "store": f"{tmp_path}/kept.db"}
        with upstream() as there, proxy(there, **settings) as url:
            assert status(url, token) == 200
            assert status(url, former) == 401


# ── a user leaves ────────────────────────────────────────────────────────────────────────


def test_a_user_is_forgotten_and_the_others_go_on(tmp_path):
    store = tmp_path / "kept.db"
    keys = {"anna": ["key of anna"], "ben": ["key of ben"]}
    for name, (key,) in keys.items():
        begun(store, key, **{name: [key]})
    wanted = sent_next(store, "key of ben", **keys)
    gone = ullage("forget", store, "--tenant", "anna")
    assert gone.status == 0, gone.err
    with closing(SqliteStore(store)) as opened:
        assert opened.refs("anna") == ()
        tenants = {one.key.tenant for one in opened.receipts()}
    assert "anna" in tenants, "receipts stay: they hold no content"
    assert NOTE not in sent_next(store, "key of anna", **keys)
    assert NOTE in wanted
    assert sent_next(store, "key of ben", **keys) == wanted


# ── drain, upgrade ───────────────────────────────────────────────────────────────────────


def test_an_upgrade_of_one_proxy_after_the_other_changes_no_byte(tmp_path):
    """Two processes on one file; the old one is drained once the new one answers."""
    store = tmp_path / "kept.db"
    with upstream() as there:
        with started(there, f"--store={store}") as old:
            for count in range(2):
                assert send(old.url, count) == 200
            with started(there, f"--store={store}") as new:
                old.process.send_signal(signal.SIGTERM)
                assert old.process.wait(30) == 0
                for count in range(2, len(TURNS) + 1):
                    assert send(new.url, count) == 200
        mixed = [request.body for request in there.requests]
    with upstream() as there, proxy(there, tenant=None) as url:
        for count in range(len(TURNS) + 1):
            assert send(url, count) == 200
        assert [request.body for request in there.requests] == mixed


def test_the_unit_of_a_service_is_one_that_systemd_takes(tmp_path):
    (unit,) = re.findall(r"```ini\n(.*?)```", OPERATE, re.S)
    settings = configparser.ConfigParser(interpolation=None)
    settings.optionxform = str
    settings.read_string(unit)
    service = settings["Service"]
    words = shlex.split(service["ExecStart"])
    (tmp_path / "proxy.toml").write_text("")
    file = words.index("--config") + 1
    words[file] = str(tmp_path / "proxy.toml")
    with proxy_command.make_context("proxy", words[2:]) as context:
        assert context.params["log"]
        assert context.params["workers"] == 2
    assert int(service["TimeoutStopSec"]) > ProxyLimits().drain_s
    checker = shutil.which("systemd-analyze")
    if checker is None:
        pytest.skip("systemd is not installed")
    (tmp_path / "ullage.service").write_text(
        unit.replace("/opt/ullage/bin/ullage", "/bin/true")
    )
    checked = subprocess.run(
        [checker, "verify", tmp_path / "ullage.service"],
        capture_output=True,
        text=True,
        check=False,
    )
    said = [
        line
        for line in checked.stderr.splitlines()
        if "ullage.service" in line
    ]
    assert said == []
