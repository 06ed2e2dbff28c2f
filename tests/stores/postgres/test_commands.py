import pytest

from tests.cli.terminal import ullage
from tests.stores.contract import batch, output
from tests.watch.test_watch import turns
from ullage.documents.conversation import PostgresConversations
from ullage.stores import PostgresStore

pytestmark = pytest.mark.xdist_group("postgres")


def test_the_commands_take_an_address(url):
    kept, store = output("one line\nanother line\n"), PostgresStore(url)
    store.commit("t", [kept], [batch(b"k", 0, b"d")])

    def ran(*words):
        return ullage(*words, env={"ULLAGE_STORE": url}).text

    assert ran("read", kept.ref, "--tenant=t") == kept.text
    assert (
        ullage("read", kept.ref, "--tenant=t", f"--store={url}").text
        == kept.text
    )
    assert "0 outputs" in ran("gc", "--older-than=30d")
    assert "1 outputs and 1 ledger records are erased" in ran(
        "forget", url, "--tenant=t"
    )
    assert store.refs("t") == ()
    store.close()


def test_a_conversation_on_a_server_is_erased(url):
    chats = PostgresConversations(url)
    for name in ("anna", "ben"):
        chats.append(name, [{"role": "user", "content": name}])
    assert (
        "1 messages are erased"
        in ullage("forget", url, "--conversation=anna").text
    )
    assert (chats.history("anna"), len(chats.history("ben"))) == ((), 1)
    chats.close()


@pytest.fixture
def agent(url):
    """The address of a server on which an agent's conversation is kept."""
    turns(url, 20)
    return url


def test_what_a_user_decides_on_a_server_is_in_its_window(agent):
    def ran(*words):
        made = ullage(*words, "--store", agent, "--json")
        assert made.status == 0, made.err
        return made.json

    (listed,) = ran("window")
    assert [row["name"] for row in ran("ls")] == [listed["name"]]
    pinned = ran("pin", "m3", "--reason", "the rules")
    ran("drop", "m5")
    noted = ran("note", "Use Python 3.11.")
    shown = ran("window", "last")
    names = [one["name"] for one in shown["decisions"]]
    assert pinned["decision"] in names
    assert noted["decision"] in names
    ran("undo", pinned["decision"])
    ran("restore", "m5", "--when", "end")
    now = [one["name"] for one in ran("window", "last")["decisions"]]
    assert pinned["decision"] not in now
    assert ran("window", "--why")["requests"] == 20


def test_pages_and_reports_are_made_from_a_server(agent, tmp_path):
    page = tmp_path / "page.html"
    env = {"ULLAGE_STORE": agent}
    assert ullage("inspect", "--html", page, env=env).status == 0
    assert "hand-bar" in page.read_text()
    seen = ullage("last", "--no-browser", "--json", env=env).json
    assert seen["requests"] == 20
    total = ullage("report", "--json", env=env).json["total"]
    assert total["requests"] >= 1  # the rest waits in its process


def test_a_server_is_followed_like_a_file(agent):
    seen = ullage("watch", agent, "--json").json
    assert seen["conversations"] == 1
    assert seen["outputs"] > 5
    assert seen["size_bytes"] > 10_000
    assert {event["kind"] for event in seen["happened"]} > {"observed"}
    by_name = ullage("watch", "--store", agent, "--once").text
    assert "1 conversation" in by_name
    assert "postgresql://" not in by_name
    usual = ullage("watch", "--json", env={"ULLAGE_STORE": agent}).json
    assert usual == seen
    assert ullage("watch", agent, "--tenant=other", "--json").json == {
        "conversations": 0,
        "outputs": 0,
        "size_bytes": 0,
        "happened": [],
    }


def test_an_address_of_another_kind_is_refused_with_what_to_give():
    ran = ullage("watch", "mysql://host/db", "--once")
    assert ran.status == 1
    assert "Use a path, or postgresql://user@host/database" in ran.err
