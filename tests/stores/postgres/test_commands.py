import pytest

from tests.cli.terminal import ullage
from tests.stores.contract import batch, output
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
