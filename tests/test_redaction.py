"""Secrets are taken out before anything is kept, summarised or shown cut; and nowhere else."""

import json
import sqlite3
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from lab import reading
from tests import histories
from tests.histories import Call, Turn
from tests.sessions import recall
from ullage import ConfigError, Limits, MemoryStore, Session, fit, problems
from ullage.core.history.canon import ref_of
from ullage.core.redaction import REDACTED, common_keys, in_message
from ullage.core.values.effects import Reply
from ullage.core.values.notices import pointers
from ullage.documents.conversation import Conversation, ConversationStore
from ullage.documents.presets.three_layer import ThreeLayerSettings
from ullage.documents.services import (
    prune_messages,
    retrieve_spilled,
    truncate_output,
)
from ullage.policy.stages.default import SUMMARISED
from ullage.wires import FORMATS

KEYS = {
    "openai": "sk-proj-" + "aB3dE5fG7h" * 4,
    "anthropic": "sk-ant-api03-" + "x1Y2z3-_" * 10,
    "aws": "AKIA" + "IOSFODNN7EXAMPLE",
    "google": "AIza" + "SyA-1234567890_abcdefghijklmnopqrst"[:35],
    "github": "ghp_" + "a1B2" * 9,
    "slack": "xoxb-" + "123456789012-abcdefABCDEF",
    "stripe": "sk_live_" + "a1B2c3D4" * 3,
    "token": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0."
    + "dBjftJeZ4CVP-mB92K27",
    "pem": "-----BEGIN RSA PRIVATE KEY-----\n"
    + "MIIEpAIBAAKCAQEA0Z3VS5JJcds3xfn\n" * 6
    + "-----END RSA PRIVATE KEY-----",
}
LINES = "a line of the output, as they all are\n"
PLANTED = "\n".join(f"{name}={key}" for name, key in KEYS.items())
SECRETS = [key.split("\n")[1] if "\n" in key else key for key in KEYS.values()]
"""What may stand nowhere: each key, and a line of the private one."""


def holds_a_secret(text):
    return [secret for secret in SECRETS if secret in text]


class Writer:
    def __init__(self):
        self.asked = []

    def __call__(self, asked):
        self.asked.append(asked)
        return Reply(text="<summary>It went on.</summary>")


def new_session(format="openai-chat", window=16_000, **more):
    limits = Limits(window_tokens=window, output_reserve_tokens=1_000)
    more = {"recall": True, "redact": common_keys, **more}
    return Session(
        histories.MODEL[format], limits=limits, format=format, **more
    )


def conversation(format, count=20):
    """Every output, argument and word of the user's has keys in it; the first is a large one."""
    big = Turn(
        calls=(
            Call("bash", "printenv", f"{LINES * 400}{PLANTED}\n{LINES * 900}"),
        )
    )
    turns = [
        Turn(
            user=f"Use {KEYS['openai']}, never another."
            if number % 5 == 0
            else None,
            said=f"I saw {KEYS['github']} in it.",
            calls=(
                Call(
                    "bash",
                    f"curl -H {KEYS['aws']}",
                    f"{number}\n{PLANTED}\n{LINES * 60}",
                ),
            ),
        )
        for number in range(count)
    ]
    return histories.wire(format, [big, *turns])


def bytes_of(folder):
    return "".join(
        file.read_bytes().decode("latin-1")
        for file in sorted(filter(Path.is_file, folder.rglob("*")))
    )


@pytest.mark.parametrize("name", KEYS)
@pytest.mark.parametrize(
    "around", ["{}", "key={}\n", '"{}"', "({})", "\\n{}\\n", "x {}, y"]
)
def test_a_key_is_taken_out_wherever_it_stands(name, around):
    shown = common_keys(around.format(KEYS[name]))
    assert shown == around.format(REDACTED)
    assert common_keys(shown) == shown


@pytest.mark.parametrize(
    "text",
    [
        "",
        "task-force sk-1 AKIA gh_x",
        "https://example.org:8080/a@b",
        LINES,
        "risk-" + "a" * 30,
    ],
)
def test_what_is_no_key_stays_the_very_same_object(text):
    assert common_keys(text) is text


def test_a_private_key_in_json_a_password_in_an_address_and_a_bearer_token():
    pem = json.dumps({"key": KEYS["pem"], "n": 1})
    assert json.loads(common_keys(pem)) == {"key": REDACTED, "n": 1}
    assert (
        common_keys("postgres://me:hunter2@db/x")
        == f"postgres://{REDACTED}@db/x"
    )
    assert (
        common_keys("Authorization: Bearer " + "a1" * 20)
        == f"Authorization: Bearer {REDACTED}"
    )
    cut = KEYS["pem"][:150]  # its end is not there
    assert not holds_a_secret(common_keys(cut + "\n" + LINES))
    assert LINES in common_keys(cut + "\n" + LINES)


@pytest.mark.parametrize(
    "part", ["-----BEGIN PRIVATE KEY-----", "sk-", "eyJ", "://a:", "xoxb-a"]
)
def test_a_hostile_text_takes_no_longer_than_any_other(part):
    assert len(common_keys(part * 60_000)) <= len(part) * 60_000


@pytest.mark.parametrize("format", sorted(FORMATS))
def test_no_key_is_kept_summarised_or_opened(format, tmp_path):
    """Cut at first sight, pruned, condensed and compacted; the store, its records, every ref."""
    model, folder = Writer(), tmp_path / "kept"
    stages = (*histories.EAGER.under_pressure, *SUMMARISED.under_pressure)
    policy = replace(SUMMARISED, name="all", under_pressure=stages)
    session = new_session(
        format, policy=policy, summariser=model, store=folder / "kept.db"
    )
    messages = conversation(format)
    lengths = [
        at
        for at, raw in enumerate(messages)
        if FORMATS[format].parse(raw, "m").role == "assistant"
    ]
    for length in [*lengths[1:], len(messages)]:
        request = histories.request(format, messages[:length])
        if not problems(request, format):
            view = session.fit(request)
            assert problems(view, format) == []
            assert session.window.estimate <= session.window.limit_tokens
    session.compact(request)
    view = session.fit(request)
    kinds = {event.kind for event in session.events}
    assert {"truncated", "pruned", "compacted"} <= kinds
    assert [
        asked for asked in model.asked if holds_a_secret("".join(asked.texts))
    ] == []
    assert not holds_a_secret(str(session.news()))
    opened, texts = {}, list(reading.visible(FORMATS[format].history(view)))
    reading.reachable(session, texts, opened)
    assert opened
    assert not holds_a_secret("".join(opened.values()))
    refs = session.store.refs("", limit=10_000)
    assert not holds_a_secret(
        "".join(session.store.get("", ref).text for ref in refs)
    )
    assert any(REDACTED in session.store.get("", ref).text for ref in refs)
    session.close()
    assert not holds_a_secret(bytes_of(folder))
    with sqlite3.connect(folder / "kept.db") as db:
        records = b"".join(
            row[0] for row in db.execute("SELECT data FROM records")
        )
    assert not holds_a_secret(records.decode("latin-1"))


def test_the_history_and_the_store_give_the_same_bytes():
    """A ref opens the same from the history at hand as in a process that has the store alone."""
    store, messages = MemoryStore(), conversation("openai-chat", 3)
    session = new_session(window=200_000, store=store)
    view = session.fit(histories.request("openai-chat", messages))
    ref = pointers(view["messages"][2]["content"])[0].ref
    alone = new_session(window=200_000, store=store)
    alone.fit(histories.request("openai-chat", messages[:1]))
    for tool, asked in (
        ("get_continuation", {"tool_call_id": ref, "offset": 14_000}),
        (
            "get_continuation",
            {"tool_call_id": ref, "pattern": "openai|aws|slack"},
        ),
    ):
        here, there = recall(session, tool, asked), recall(alone, tool, asked)
        assert here == there
        assert REDACTED in here
        assert not holds_a_secret(here)
    kept = store.get("", ref)
    assert kept.ref == ref_of(kept.text)


def test_what_is_not_edited_is_the_callers_own_object_and_is_counted_as_it_is_sent():
    messages = histories.wire(
        "openai-chat", [Turn(calls=(Call("bash", "x", PLANTED),))]
    )
    request = histories.request("openai-chat", messages)
    session, plain = (
        new_session(window=200_000),
        new_session(window=200_000, redact=None),
    )
    view = session.fit(request)
    assert all(
        one is other
        for one, other in zip(view["messages"], messages, strict=True)
    )
    plain.fit(request)
    assert session.window.tokens == plain.window.tokens


def test_a_cold_start_sees_what_a_warm_session_saw():
    store, messages = MemoryStore(), conversation("openai-chat")
    session = new_session(store=store)
    for length in range(1, len(messages) + 1, 2):
        view = session.fit(histories.request("openai-chat", messages[:length]))
    request = histories.request("openai-chat", messages[:length])
    assert new_session(store=store).fit(request) == view


def test_what_repair_sets_aside_is_redacted():
    stray = {"role": "tool", "tool_call_id": "nobody", "content": PLANTED}
    store = MemoryStore()
    session = new_session(store=store, repair=True, window=200_000)
    view = session.fit(
        histories.request(
            "openai-chat", [{"role": "user", "content": "Go."}, stray]
        )
    )
    assert problems(view) == []
    (ref,) = store.refs("")
    assert not holds_a_secret(store.get("", ref).text)


def test_switched_on_in_the_middle_it_is_reported():
    store, messages = MemoryStore(), conversation("openai-chat")
    new_session(store=store, redact=None).fit(
        histories.request("openai-chat", messages[:-2])
    )
    session = new_session(store=store)
    session.fit(histories.request("openai-chat", messages))
    assert "changed" in {event.kind for event in session.events}


def test_what_gives_no_text_is_refused():
    session = new_session(redact=lambda text: None)
    with pytest.raises(ConfigError, match="redact"):
        session.fit(
            histories.request("openai-chat", conversation("openai-chat", 1))
        )


@pytest.mark.parametrize(
    "error", [ValueError, KeyError, UnicodeDecodeError, RecursionError]
)
@pytest.mark.parametrize("format", sorted(FORMATS))
def test_where_redact_raises_nothing_is_kept_and_nothing_of_the_text_is_told(
    format, error
):
    """The turn is refused; the session goes on with what can be redacted."""

    def redact(text):
        if "k3y" not in text:
            return text
        raise error(
            *(
                (text,)
                if error is not UnicodeDecodeError
                else ("a", b"", 0, 1, text)
            )
        )

    store, turns = MemoryStore(), conversation(format, 1)
    secret = histories.Turn(
        calls=(histories.Call("bash", '{"a": "k3y"}', "k3y " * 20_000),)
    )
    session = new_session(format, redact=redact, store=store, repair=True)
    broken = histories.request(
        format, [*turns, *histories.wire(format, [secret])]
    )
    for _ in range(2):
        with pytest.raises(ConfigError, match=error.__name__) as caught:
            session.fit(broken)
        assert "k3y" not in str(caught.value) + repr(
            caught.value.__context__ or ""
        )
        assert list(store.refs("")) == []
    assert session.fit(histories.request(format, turns))
    assert "k3y" not in str(session.news())


@given(turns=histories.histories, format=st.sampled_from(sorted(FORMATS)))
def test_what_takes_nothing_out_changes_nothing(turns, format):
    request = histories.request(format, histories.wire(format, turns))
    plain = new_session(format, 6_000, redact=None).fit(request)
    assert (
        new_session(format, 6_000, redact=lambda text: text).fit(request)
        == plain
    )


@given(turns=histories.histories, format=st.sampled_from(sorted(FORMATS)))
def test_whatever_is_taken_out_the_view_is_legal_and_fits(turns, format):
    request = histories.request(format, histories.wire(format, turns))
    session = new_session(
        format,
        6_000,
        redact=lambda text: text.replace("e", "").replace("1", ""),
    )
    view = session.fit(request)
    assert problems(view, format) == problems(request, format)
    assert session.window.estimate <= session.window.limit_tokens


@pytest.mark.parametrize("format", sorted(FORMATS))
def test_a_conversation_that_is_kept_holds_no_key_and_is_sent_as_it_is_kept(
    format, tmp_path
):
    writer = Writer()
    kept = ConversationStore(
        tmp_path / "chat.db", format=format, redact=common_keys
    )

    def opened():
        limits = Limits(window_tokens=16_000, output_reserve_tokens=1_000)
        model, store = histories.MODEL[format], str(tmp_path / "outputs.db")
        return Conversation(
            kept, "one", model, limits=limits, store=store, summariser=writer
        )

    conversation_ = opened()
    request = histories.request(format, [])
    request.pop(FORMATS[format].key)
    for message in conversation(format):
        conversation_.append([message])
        view = conversation_.fit(request)
    assert writer.asked
    again = opened()
    assert again.messages == conversation_.messages, (
        "what is loaded is what was sent"
    )
    assert again.fit(request) == view
    assert REDACTED in json.dumps(view, default=str)
    for each in (
        json.dumps(view, default=str),
        str(writer.asked),
        bytes_of(tmp_path),
    ):
        assert not holds_a_secret(each)
    said = [Turn(said="Yes."), Turn(user="And?", said="No.")]
    *_, last = kept.append("two", histories.wire(format, said))
    part = kept.mark_compacted(last, f"He said {KEYS['aws']}.", tokens=1)
    assert part.summary == f"He said {REDACTED}."


def test_signatures_ids_and_media_of_a_kept_message_stay():
    key = KEYS["aws"]
    source = {"type": "base64", "media_type": "image/png", "data": key}
    blocks = [
        {"type": "thinking", "thinking": f"a {key}", "signature": key},
        {
            "type": "tool_use",
            "id": key,
            "name": key,
            "input": {"type": key, "deep": [key]},
        },
        {"type": "image", "source": source},
        {
            "type": "document",
            "source": {
                "type": "text",
                "media_type": "text/plain",
                "data": key,
            },
        },
    ]
    thought, call, image, document = in_message(
        {"content": blocks}, common_keys
    )["content"]
    assert thought == {**blocks[0], "thinking": f"a {REDACTED}"}
    assert call == {
        **blocks[1],
        "input": {"type": REDACTED, "deep": [REDACTED]},
    }
    assert image == blocks[2]
    assert document["source"]["data"] == REDACTED


def test_the_services_of_the_three_layers_keep_and_show_no_key(tmp_path):
    output = f"{PLANTED}\n{LINES * 3_000}"
    result = truncate_output(
        output, "bash", spill_directory=tmp_path, redact=common_keys
    )
    assert REDACTED in result.output
    assert retrieve_spilled(result.spill_path) == common_keys(output)
    assert not holds_a_secret(result.output + bytes_of(tmp_path))
    settings = ThreeLayerSettings(
        prune_protect_tokens=1_000, prune_output_retain_chars=400
    )
    messages = conversation("openai-chat")
    pruned = prune_messages(
        messages, 10**6, 10**6, settings, redact=common_keys
    )
    assert pruned.was_pruned
    shown = zip(pruned.pruned_parts, pruned.is_pruned, strict=True)
    touched = [message for message, is_pruned in shown if is_pruned]
    assert not holds_a_secret(
        json.dumps(touched) + "".join(out.text for out in pruned.outputs)
    )


def test_one_request_is_fitted_without_a_key_in_what_was_cut(tmp_path):
    messages = conversation("openai-chat")
    request = histories.request("openai-chat", messages)
    limits, store = Limits(window_tokens=8_000), str(tmp_path / "u.db")
    view = fit(
        request, limits=limits, store=store, redact=common_keys, recall=True
    )
    sent = [message for message in view["messages"] if message not in messages]
    assert sent
    assert not holds_a_secret(json.dumps(sent) + bytes_of(tmp_path))
