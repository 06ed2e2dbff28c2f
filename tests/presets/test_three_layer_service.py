"""`three-layer-management.md`, what stands around the layers: the loop of a chat service, its
configuration, its counters, clean-up, and the path of migration."""

import asyncio
import json
import os
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

import openai
import pytest

from tests import histories
from tests.histories import Call, Turn
from tests.presets.three_layer import Asked, words
from ullage import (
    AsyncSession,
    ConfigError,
    Limits,
    MemoryStore,
    Session,
    SqliteStore,
)
from ullage.core.contract.policy import BesideStore
from ullage.core.history.canon import ref_of
from ullage.documents import load, preset, three_layer
from ullage.documents.metrics import TokenManagementMetrics
from ullage.documents.presets._files import values_of
from ullage.documents.presets._settings import read
from ullage.documents.presets.three_layer import ThreeLayerSettings
from ullage.documents.services import retrieve_spilled
from ullage.policy.stages import rough
from ullage.stores import SpillStore
from ullage.stores.threaded import Threaded

LONG = "\n".join(["line"] * 3_000)
SMALL = {"limits": Limits(window_tokens=100_000)}
CONFIGURATION = """// appsettings.json additions
{
  "TokenManagement": {
    "MaxOutputLines": 2000,
    "MaxOutputBytes": 51200,
    "MaxLineLength": 2000,
    "PruneProtectTokens": 40000,
    "PruneMinimumTokens": 20000,
    "CompactionThreshold": 0.90,
    "CompactionTargetPercent": 50,
    "EnableDiskSpillover": true,
    "SpillDirectory": "data/spill",
    "ToolOutputLimits": {
      "read": 100000,
      "bash": 50000,
      "grep": 30000,
      "glob": 20000,
      "default": 50000
    }
  }
}
"""


# ── the loop, over the vendor's own SDK ──────────────────────────────────────────────────


@contextmanager
def provider(*calls):
    """A server of Chat Completions: it asks for these tools one by one, then says it is done.

    Yields a client, and the requests that came in.
    """
    requests = []

    class Answers(BaseHTTPRequestHandler):
        def do_POST(self):
            length = int(self.headers["content-length"])
            requests.append(json.loads(self.rfile.read(length)))
            body = json.dumps(_reply(calls, len(requests) - 1)).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    with HTTPServer(("127.0.0.1", 0), Answers) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        url = f"http://127.0.0.1:{server.server_port}/v1"
        try:
            with openai.OpenAI(
                base_url=url, api_key="none", max_retries=0
            ) as client:
                yield client, requests
        finally:
            server.shutdown()
            thread.join()


def _reply(calls, number):
    message = {"role": "assistant", "content": "Done."}
    if number < len(calls):
        body = {"name": calls[number], "arguments": "{}"}
        call = {"id": f"call_{number}", "type": "function", "function": body}
        message = {"role": "assistant", "content": None, "tool_calls": [call]}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    usage = {"prompt_tokens": 100, "completion_tokens": 5, "total_tokens": 105}
    head = {
        "id": f"chatcmpl-{number}",
        "object": "chat.completion",
        "created": 0,
        "model": "m",
    }
    return {**head, "choices": [choice], "usage": usage}


def run_async(client, session, user_input, execute_tool):
    """`RunAsync` of the document, without its own three services."""
    messages = [{"role": "user", "content": user_input}]
    while True:
        request = {"model": "nobody-knows", "messages": messages}
        reply = client.chat.completions.create(**session.fit(request))
        session.observe(reply)
        message = reply.choices[0].message
        messages.append(message.model_dump(exclude_none=True))
        if not message.tool_calls:
            return message.content, messages
        for call in message.tool_calls:
            text = execute_tool(call.function.name)
            messages.append(
                {"role": "tool", "tool_call_id": call.id, "content": text}
            )


@pytest.mark.says(
    "three-layer-management",
    "Integration with ChatService",
    """
        // Process tool calls with Layer 1 truncation
        if (response.ToolCalls?.Count > 0)
        {
            foreach (var toolCall in response.ToolCalls)
            {
                var toolResult = await ExecuteToolAsync(toolCall, session, ct);

                // Layer 1: Truncate tool output
                var truncated = _truncationService.Truncate(
                    toolResult,
                    toolCall.Function.Name);

                chatMessages.Add(new ChatMessage
                {
                    Role = "tool",
                    ToolCallId = toolCall.Id,
                    Content = truncated.Output
                });

                if (truncated.WasTruncated)
                {
                    _logger.LogDebug(
                        "Truncated {Tool} output: {Before} → {After} bytes",
                        toolCall.Function.Name,
                        truncated.OriginalBytes,
                        truncated.TruncatedBytes);
                }
    """,
    lives="ullage.session.session.Session",
)
@pytest.mark.says(
    "three-layer-management",
    "Migration Path",
    "Update ChatService to use 3-layer approach",
    lives="ullage.session.session.Session",
)
def test_a_chat_service_runs_on_the_real_sdk():
    outputs = {"list": words(10_500), "read": words(40_000), "bash": LONG}
    session = Session(
        "nobody-knows", policy="three_layer", format="openai-chat"
    )
    with provider(*outputs) as (client, requests):
        said, history = run_async(client, session, "Go.", outputs.__getitem__)
    assert said == "Done."
    shown = {
        message["tool_call_id"]: message["content"]
        for message in requests[-1]["messages"]
        if message["role"] == "tool"
    }
    assert (
        "[Output truncated: 245 → 233 lines, 10.3KB → 9.8KB]"
        in shown["call_0"]
    )
    assert shown["call_1"] == outputs["read"]
    assert (
        "[Output truncated: 3000 → 2000 lines, 14.6KB → 9.8KB]"
        in shown["call_2"]
    )
    assert [m["content"] for m in history if m["role"] == "tool"] == list(
        outputs.values()
    )
    told = [event for event in session.events if event.kind == "truncated"]
    assert (told[1].where, told[1].why) == (
        "message 7, bash result",
        "3,000 lines, 14,999 bytes; shown 2,000 and 9,999",
    )


# ── configuration ────────────────────────────────────────────────────────────────────────


@pytest.mark.says(
    "three-layer-management",
    "Configuration",
    """
  "TokenManagement": {
    "MaxOutputLines": 2000,
    "MaxOutputBytes": 51200,
    "MaxLineLength": 2000,
    "PruneProtectTokens": 40000,
    "PruneMinimumTokens": 20000,
    "CompactionThreshold": 0.90,
    "CompactionTargetPercent": 50,
    "EnableDiskSpillover": true,
    "SpillDirectory": "data/spill",
    "ToolOutputLimits": {
      "read": 100000,
      "bash": 50000,
      "grep": 30000,
      "glob": 20000,
      "default": 50000
    """,
    lives="ullage.documents.presets.three_layer.ThreeLayerSettings",
)
@pytest.mark.parametrize("wrapped", ["// a service's own file\n", ""])
def test_the_documents_own_file_is_read(tmp_path, monkeypatch, wrapped):
    file = tmp_path / "appsettings.json"
    file.write_text(wrapped + CONFIGURATION, encoding="utf-8-sig")
    assert read(ThreeLayerSettings, values_of(file)) == _of_the_file()
    monkeypatch.chdir(tmp_path)
    asked = Asked(policy=load("three_layer", file)).tool(LONG)
    path = f"data/spill/{ref_of(LONG)}.txt"
    assert f"[Full output saved to: {path}]" in asked.shown()[0]
    assert retrieve_spilled(path) == LONG


def _of_the_file():
    return ThreeLayerSettings(
        max_output_lines=2_000,
        max_output_bytes=51_200,
        max_line_length=2_000,
        prune_protect_tokens=40_000,
        prune_minimum_tokens=20_000,
        compaction_threshold=0.9,
        compaction_target_percent=50,
        enable_disk_spillover=True,
        spill_directory="data/spill",
        tool_output_limits={
            "read": 100_000,
            "bash": 50_000,
            "grep": 30_000,
            "glob": 20_000,
            "default": 50_000,
        },
    )


def test_the_files_numbers_are_the_defaults():
    ours, theirs = ThreeLayerSettings(), _of_the_file()
    for name in ours.__struct_fields__:
        if name not in (
            "enable_disk_spillover",
            "spill_directory",
            "tool_output_limits",
        ):
            assert getattr(ours, name) == getattr(theirs, name)
    assert theirs.tool_output_limits.items() <= ours.tool_output_limits.items()


@pytest.mark.says(
    "three-layer-management",
    "Migration Path",
    "Configure per-tool limits in appsettings",
    lives="ullage.documents.load",
)
def test_limits_by_tool_are_configured_and_the_others_stay():
    policy = load(
        "three_layer",
        {"TokenManagement": {"ToolOutputLimits": {"fetch_log": 5_000}}},
    )
    asked = Asked(policy=policy)
    asked.tool(words(6_000), "fetch_log").tool(words(6_000), "bash").tool(
        words(10_500), "list"
    )
    assert ["[Output truncated" in text for text in asked.shown()] == [
        True,
        False,
        True,
    ]


def test_other_sections_of_a_services_file_are_left_alone(tmp_path):
    file = tmp_path / "appsettings.json"
    sections = {
        "Logging": {"Level": "Debug"},
        "TokenManagement": {"MaxOutputLines": 7},
    }
    file.write_text(json.dumps(sections))
    asked = Asked(policy=load("three_layer", file)).tool(
        "a line of some length\n" * 30
    )
    assert "[Output truncated: 31 → 7 lines, 660B → 153B]" in asked.shown()[0]
    toml = tmp_path / "settings.toml"
    toml.write_text("[TokenManagement]\nMaxOutputLines = 7\n")
    assert read(ThreeLayerSettings, values_of(toml)) == read(
        ThreeLayerSettings, values_of(file)
    )


@pytest.mark.says(
    "three-layer-management",
    "Migration Path",
    "Enable disk spillover",
    lives="ullage.stores.with_files",
)
def test_spillover_is_switched_on_and_off(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def directory(**settings):
        return three_layer(ThreeLayerSettings(**settings)).spill_directory

    assert directory() == BesideStore()
    assert directory(enable_disk_spillover=True) == BesideStore(
        otherwise="data/spill"
    )
    assert directory(spill_directory="a/b") == "a/b"
    assert (
        directory(enable_disk_spillover=False, spill_directory="a/b") is None
    )
    off = ThreeLayerSettings(
        enable_disk_spillover=False, spill_directory="a/b"
    )
    asked = Asked(off, store=tmp_path / "chat.db").tool(LONG)
    assert "saved to" not in asked.shown()[0]
    assert sorted(place.name for place in tmp_path.iterdir()) == [
        "chat.db",
        "chat.db-shm",
        "chat.db-wal",
    ]


@pytest.mark.skipif(os.name != "posix", reason="modes are POSIX")
def test_files_are_private_and_those_of_a_tenant_are_apart(tmp_path):
    settings = ThreeLayerSettings(spill_directory=f"{tmp_path}/spill")
    for tenant in ("", "anna", "../otto"):
        Asked(settings, tenant=tenant).tool(LONG)
    name = f"{ref_of(LONG)}.txt"
    files = sorted(path for path in tmp_path.rglob("*.txt"))
    assert [path.name for path in files] == [name] * 3
    assert {path.stat().st_mode & 0o777 for path in files} == {0o600}
    assert {path.parent.stat().st_mode & 0o777 for path in files} == {0o700}
    assert {path.parent.parent for path in files} == {
        tmp_path,
        tmp_path / "spill",
    }


def test_a_store_that_has_files_keeps_them_where_they_are(tmp_path):
    store = SpillStore(SqliteStore(tmp_path / "chat.db"), tmp_path / "mine")
    for policy in (
        preset("three_layer"),
        three_layer(ThreeLayerSettings(spill_directory="x")),
    ):
        asked = Asked(policy=policy, store=store).tool(LONG)
        assert (
            f"[Full output saved to: {tmp_path}/mine/{ref_of(LONG)}.txt]"
            in asked.shown()[0]
        )
    assert asked.session.store is store
    store.close()


def test_the_session_of_an_event_loop_keeps_files_too(tmp_path):
    async def shown(**more):
        session = AsyncSession("nobody-knows", format="openai-chat", **more)
        messages = Asked().tool(LONG).messages
        view = await session.fit(
            {"model": "nobody-knows", "messages": messages}
        )
        await session.close()
        return view["messages"][-1]["content"]

    settings = ThreeLayerSettings(spill_directory=f"{tmp_path}/spill")
    named = f"saved to: {tmp_path}/spill/{ref_of(LONG)}.txt]"
    assert named in asyncio.run(shown(policy=three_layer(settings)))
    assert (tmp_path / "spill" / f"{ref_of(LONG)}.txt").read_text() == LONG
    files = Threaded(SpillStore(MemoryStore(), tmp_path / "own"))
    assert f"{tmp_path}/own/" in asyncio.run(
        shown(policy="three_layer", store=files)
    )
    plain = Threaded(MemoryStore())
    assert "saved to" not in asyncio.run(
        shown(policy="three_layer", store=plain)
    )
    with pytest.raises(ConfigError, match="asynchronous store keeps no files"):
        asyncio.run(shown(policy=three_layer(settings), store=plain))


# ── counters ─────────────────────────────────────────────────────────────────────────────


@pytest.mark.says(
    "three-layer-management",
    "Monitoring and Metrics",
    """
public class TokenManagementMetrics
{
    public int TotalTruncations { get; set; }
    public int TotalPrunings { get; set; }
    public int TotalCompactions { get; set; }
    public long BytesTruncated { get; set; }
    public long TokensPruned { get; set; }
    public long TokensCompacted { get; set; }
    public long SpillFilesCreated { get; set; }
    public long SpillBytesWritten { get; set; }
    """,
    lives="ullage.documents.metrics.TokenManagementMetrics",
)
@pytest.mark.says(
    "three-layer-management",
    "Migration Path",
    "Monitor metrics and tune thresholds",
    lives="ullage.documents.metrics.TokenManagementMetrics",
)
def test_the_eight_counters(tmp_path):
    asked = Asked(
        ThreeLayerSettings(spill_directory=f"{tmp_path}"),
        model="gpt-4.1",
        **SMALL,
    )
    assert set(_counted(asked).values()) == {0}
    asked.tool(LONG).tool(LONG)
    for number in range(10):
        asked.tool(words(40_000, f"{number:02}"))
    counted, pruned = _counted(asked), asked.told("pruned")
    assert counted == {
        "TotalTruncations": 2,
        "TotalPrunings": len(pruned),
        "TotalCompactions": 0,
        "BytesTruncated": 2 * (14_999 - 9_999),
        "TokensPruned": sum(
            event.tokens_before - event.tokens_after for event in pruned
        ),
        "TokensCompacted": 0,
        "SpillFilesCreated": 1
        + sum(event.ref != ref_of(LONG) for event in pruned),
        "SpillBytesWritten": sum(
            file.stat().st_size for file in tmp_path.glob("*.txt")
        ),
    }
    assert len(pruned) >= 3
    assert counted["TokensPruned"] >= 10_000
    assert f", in {tmp_path}/{pruned[0].ref}.txt]\n[Output pruned:" in "".join(
        asked.shown()
    )
    later = ThreeLayerSettings(
        prune_threshold=1.0,
        default_max_output_tokens=0,
        compaction_threshold=1.0,
    )
    calm = Asked(later, model="gpt-4.1", **SMALL)
    for number in range(9):
        calm.tool(words(40_000, f"{number:02}"))
    assert rough.view_tokens(calm.session.window) > 85_000
    assert _counted(calm)["TotalPrunings"] == 0
    full = Asked(
        ThreeLayerSettings(prune_threshold=1.0, default_max_output_tokens=0),
        model="gpt-4.1",
        **SMALL,
    )
    for number in range(9):
        full.tool(words(40_000, f"{number:02}"))
    told = full.told("compacted")
    assert _counted(full)["TotalCompactions"] == len(told) > 0
    won = sum(event.tokens_before - event.tokens_after for event in told)
    assert _counted(full)["TokensCompacted"] == won > 14_000


def _counted(asked):
    metrics = TokenManagementMetrics.of(
        asked.session.events, asked.session.store
    )
    return metrics.under_its_own_names()


@pytest.mark.parametrize("policy", ["three_layer", histories.CUTS_ALWAYS])
@pytest.mark.parametrize("store", [type(None), MemoryStore])
def test_a_session_for_each_request_counts_each_cut_once(policy, store):
    calls = [
        Call("bash", f"{n}", f"line {n} of this\n" * 2_500) for n in range(9)
    ]
    messages = histories.wire(
        "openai-chat", [Turn(calls=(call,)) for call in calls]
    )
    places = [
        n
        for n, message in enumerate(messages)
        if message["role"] == "assistant"
    ]
    events, store, added, named = (
        [],
        store(),
        TokenManagementMetrics(),
        TokenManagementMetrics(),
    )
    for place in (*places[1:], len(messages)):
        session = Session("gpt-4.1", policy=policy, store=store)
        session.fit(histories.request("openai-chat", messages[:place]))
        events += session.events
        added += TokenManagementMetrics.of(session.events)
        named += TokenManagementMetrics.of(session.events, conversation="one")
    assert sum(event.kind == "truncated" for event in events) > 9
    once = added.under_its_own_names()
    assert once["TotalTruncations"] == 9
    assert once["BytesTruncated"] == sum(
        event.left_out_bytes
        for event in set(events)
        if event.kind == "truncated"
    )
    assert once == TokenManagementMetrics.of(events).under_its_own_names()
    assert once == named.under_its_own_names()
    named += TokenManagementMetrics.of(events, conversation="another")
    assert named.under_its_own_names()["TotalTruncations"] == 18


def test_counters_of_several_sessions_add_up(tmp_path):
    store = SpillStore(MemoryStore(), tmp_path)
    asked = [
        Asked(policy="three_layer", store=store).tool(text)
        for text in (LONG, LONG + "!")
    ]
    one, other = (
        TokenManagementMetrics.of(each.session.events) for each in asked
    )
    files = TokenManagementMetrics.of((), store)
    events = [event for each in asked for event in each.session.events]
    assert one + other + files == TokenManagementMetrics.of(events, store)
    assert (one + other).under_its_own_names()[
        "BytesTruncated"
    ] == 5_000 + 5_001
    assert files.spill_bytes_written == 14_999 + 15_000


# ── clean-up ─────────────────────────────────────────────────────────────────────────────


@pytest.mark.says(
    "three-layer-management",
    "Performance Considerations",
    "**Spill Cleanup**: Schedule cleanup of old spill files",
    lives="ullage.stores.SpillStore",
    see="ullage gc --spill data/spill --older-than 30d --every 1d",
)
def test_files_unused_for_a_month_go_once_a_day_and_nothing_is_lost(tmp_path):
    settings = ThreeLayerSettings(spill_directory=f"{tmp_path}/spill")
    store = SqliteStore(tmp_path / "chat.db")
    old, fresh, newest = LONG + "1", LONG + "2", LONG + "3"
    asked = Asked(settings, store=store).tool(old)
    _age(tmp_path / "spill", days=31)
    asked.tool(fresh)
    assert _outputs(tmp_path / "spill") == {fresh}
    assert store.get("", ref_of(old)).text == old
    for file in (tmp_path / "spill").glob("*.txt"):
        os.utime(file, (0, 0))
    asked.tool(newest)
    assert _outputs(tmp_path / "spill") == {
        fresh,
        newest,
    }  # looked at not a day ago
    store.close()


def test_whoever_comes_next_cleans_up_after_tenants_that_are_gone(tmp_path):
    settings = ThreeLayerSettings(spill_directory=f"{tmp_path}")
    Asked(settings, tenant="anna").tool(LONG)
    _age(tmp_path, days=31)
    Asked(settings, tenant="otto").tool(LONG + "2")
    assert {file.read_text() for file in tmp_path.rglob("*.txt")} == {
        LONG + "2"
    }


def _age(folder, days):
    for place in folder.rglob("*"):
        at = place.stat().st_mtime - days * 86_400
        os.utime(place, (at, at))


def _outputs(folder):
    return {file.read_text() for file in folder.glob("*.txt")}


def test_a_clean_up_that_fails_stops_nobody(tmp_path, monkeypatch):
    asked = Asked(ThreeLayerSettings(spill_directory=f"{tmp_path}")).tool(LONG)
    _age(tmp_path, days=31)
    monkeypatch.setattr("pathlib.Path.iterdir", _refused)
    asked.tool(LONG + "2")
    assert f"{ref_of(LONG + '2')}.txt" in asked.shown()[1]


def _refused(_):
    raise PermissionError
