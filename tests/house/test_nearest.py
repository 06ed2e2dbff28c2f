"""Each module has a test file near it: of its name, or the one that is named here.

The nearest test file is where a fault in a module is noticed in seconds. Where a file of the
module's own name would say less than the file of its kind, the row below says which that is.
"""

from fnmatch import fnmatch
from pathlib import Path

ROOT = Path(__file__).parents[2]
SRC, TESTS = ROOT / "src" / "ullage", ROOT / "tests"
MODULES = sorted(
    file.relative_to(SRC).as_posix()
    for file in SRC.rglob("*.py")
    if file.name != "__init__.py"
)

NEAREST = {
    # these left their package, and their tests stay
    "core/contract/bound.py": "stages/test_bound.py",
    "core/contract/policy.py": "stages/test_policy.py",
    "core/contract/settings.py": "stages/test_settings.py",
    "core/installing.py": "house/test_installing.py",
    "core/on_demand.py": "house/test_on_demand.py",
    "core/values/carried.py": "session/test_carried.py",
    # what commands share is tried by the commands
    "tools/cli/_*.py": "cli/test_replay.py",
    "tools/cli/doctor.py": "proxy/test_doctor.py",
    "tools/cli/proxy.py": "proxy/test_server.py",
    "tools/replay/report/live.py": "proxy/test_pages.py",
    "tools/replay/report/why.py": "cli/test_why.py",
    "doors/proxy/siblings.py": "proxy/test_pages.py",
    "doors/proxy/unsent.py": "proxy/test_relay.py",
    "doors/proxy/client_request.py": "proxy/test_relay.py",
    "doors/proxy/cache_worth.py": "proxy/test_keepalive.py",
    "doors/proxy/relayed.py": "proxy/test_fitting.py",
    "doors/proxy/decoding.py": "proxy/test_bodies.py",
    "doors/proxy/upstream.py": "proxy/test_replies.py",
    "core/redaction/*.py": "test_redaction_forms.py",
    "tools/cli/decide.py": "cli/test_window.py",
    "tools/cli/commands.py": "hand/test_commands.py",
    "tools/cli/watch.py": "watch/test_watch.py",
    "tools/watch/*.py": "watch/test_watch.py",
    "tools/cli/fit.py": "cli/test_fit_and_read.py",
    "tools/cli/read.py": "cli/test_fit_and_read.py",
    "tools/cli/grep.py": "cli/test_fit_and_read.py",
    "tools/cli/mcp.py": "mcp/test_stdio.py",
    "doors/exchange/claiming.py": "proxy/test_spending.py",
    "doors/exchange/spending.py": "proxy/test_spending.py",
    "stores/_spending.py": "stores/test_spending.py",
    "stores/postgres/team_spending.py": "stores/test_spending.py",
    "doors/exchange/*.py": "exchange/test_exchange.py",
    "doors/wrapping/*.py": "wrapping/test_clients.py",
    "core/history/builder.py": "history/test_window.py",
    "core/history/again.py": "history/test_hand.py",
    "core/turn/again.py": "turn/test_hand.py",
    "core/turn/cuts.py": "turn/test_checks.py",
    "core/turn/leaves.py": "turn/test_checks.py",
    "core/turn/spans.py": "turn/test_checks.py",
    # the transcript asks who answers whom, the memo what a caller changed
    "core/history/pairing.py": "history/test_transcript.py",
    "core/history/snapshots.py": "turn/test_caches.py",
    "doors/files/changing.py": "mcp/test_installing.py",
    "doors/proxy/answering.py": "cli/test_install.py",
    "doors/proxy/installing.py": "cli/test_install.py",
    "doors/mcp/clients.py": "mcp/test_clients_files.py",
    # these run in Google ADK, in an environment of its own
    "integrations/adk/*.py": "integrations/adk/test_limits.py",
    "integrations/strands/*.py": "integrations/strands/test_strands.py",
    "integrations/claude_agent_sdk.py": "integrations/claude_agent_sdk/test_claude_agent_sdk.py",
    "integrations/hermes.py": "integrations/hermes/test_hermes.py",
    "integrations/inspect_ai/*.py": "integrations/inspect/test_inspect.py",
    "integrations/litellm.py": "integrations/litellm/test_litellm.py",
    "integrations/openai_agents.py": "integrations/openai_agents/test_openai_agents.py",
    "doors/loop/drive.py": "loop/test_turn.py",
    "doors/loop/steps.py": "loop/test_turn.py",
    "documents/services.py": "presets/test_three_layer_service.py",
    "documents/conversation/opening.py": "cli/test_forget.py",
    "documents/conversation/_async.py": "loop/test_conversation_async.py",
    "documents/conversation/*.py": "loop/test_conversation.py",
    "session/picture/*.py": "picture/test_picture.py",
    "documents/presets/_settings.py": "presets/test_multi_stage.py",
    "documents/presets/_files.py": "presets/test_multi_stage.py",
    "session/recall/corpus.py": "recall/test_lines.py",
    "session/recall/beneath.py": "recall/test_lines.py",
    "session/recall/pattern.py": "recall/test_grep.py",
    "session/recall/automaton.py": "recall/test_grep.py",
    # a run read, replayed and summed up
    "tools/replay/engines/*.py": "replay/engines/test_engines.py",
    "tools/replay/readers/_objects.py": "cli/test_replay.py",
    "tools/replay/readers/*.py": "replay/test_readers.py",
    "tools/replay/reading.py": "replay/evidence/test_score.py",
    "tools/replay/policies.py": "cli/test_replay.py",
    "tools/replay/record.py": "replay/test_recorded.py",
    "tools/replay/gates.py": "replay/test_run.py",
    "tools/replay/calls.py": "replay/test_run.py",
    "tools/replay/trace.py": "replay/test_tracer.py",
    "tools/replay/cost/prefix.py": "replay/cost/test_cache.py",
    "core/contract/kinds.py": "stages/test_truncate.py",
    # both sessions, by what they promise
    "session/closing.py": "session/test_sessions.py",
    "session/changes.py": "session/test_state.py",
    "session/core.py": "session/test_state.py",
    "session/provider/passing.py": "session/test_unfitted.py",
    "session/replies.py": "session/test_evidence.py",
    "session/turns.py": "session/test_state.py",
    "session/session.py": "session/test_state.py",
    "session/aio.py": "session/test_ahead.py",
    "session/drivers.py": "session/test_bad_stores.py",
    "session/provider/streams.py": "session/test_call.py",
    "session/view.py": "session/test_workers.py",
    "session/provider/reports.py": "spend/test_reports.py",
    "session/spend/account.py": "spend/test_reports.py",
    "__main__.py": "cli/test_main.py",
    "session/spend/allowance.py": "spend/test_budget.py",
    "session/spend/teams/*.py": "spend/test_teams.py",
    "core/values/spending.py": "stores/test_spending.py",
    "session/spend/book.py": "spend/test_reports.py",
    "documents/metrics.py": "presets/test_three_layer_service.py",
    # the tests keep the name of what is tried
    "session/prompt_cache/breaks.py": "session/test_cache_breaks.py",
    "session/receipts/writer.py": "session/test_receipts.py",
    "session/decisions/entries.py": "session/test_client_sessions.py",
    "session/stored/conversation.py": "session/test_stored.py",
    "session/stored/estimate.py": "session/test_stored.py",
    "doors/exchange.stored_exchange.py": "hidden_turns/test_stored.py",
    # shared by several stages, and seen in the conversations of those
    "policy/stages/default.py": "stages/test_policy.py",
    "policy/stages/facts.py": "stages/test_account.py",
    "policy/stages/runs.py": "stages/test_compact.py",
    "core/contract/ranges.py": "stages/test_compact.py",
    "core/contract/choice.py": "wires/test_choice.py",
    "core/contract/format.py": "wires/test_wires.py",
    "core/history/index.py": "stages/test_account.py",
    "policy/stages/shorten.py": "stages/test_truncate.py",
    "policy/stages/summary.py": "stages/test_compact.py",
    # the store contract, by the store that keeps everything
    "stores/_*.py": "stores/test_sqlite.py",
    "stores/objects/*.py": "stores/objects/test_storage.py",
    "stores/postgres/*.py": "stores/postgres/test_contract.py",
    "session/summarise/*.py": "summarise/test_summarise.py",
    "testing/*.py": "testing/test_stores.py",
    "core/tokens/estimate.py": "tokens/test_calibrate.py",
    "core/tokens/exact.py": "tokens/test_counters.py",
    "core/tokens/weights.py": "tokens/test_calibrate.py",
    "policy/stages/samples.py": "stages/test_fingerprints.py",
    "core/tokens/models.py": "tokens/test_counters.py",
    "core/tokens/payload.py": "tokens/test_media.py",
    # the steps of a turn, as effects
    "core/turn/rendering.py": "turn/test_work.py",
    "core/turn/request.py": "session/test_malformed.py",
    "core/turn/ledger_lookup.py": "session/test_workers.py",
    "core/turn/recall_offer.py": "session/test_joining.py",
    "core/turn/resolution.py": "session/test_upgrades.py",
    "core/turn/held_elsewhere.py": "turn/test_threads.py",
    "core/turn/*.py": "turn/test_engine.py",
    "core/values/briefs.py": "turn/test_filling.py",
    "core/values/effects.py": "turn/test_engine.py",
    "core/values/messages.py": "history/test_canon.py",
    "core/values/toolset.py": "recall/test_specs.py",
    # a wire is a folder, and what is asked of it is the same of all: one file a question
    "wires/hidden_turns/*.py": "hidden_turns/test_dialect.py",
    "wires/*/hidden_turns.py": "hidden_turns/test_dialects.py",
    "wires/*/rules*.py": "wires/test_rule_examples.py",
    "wires/rules/*.py": "wires/test_rules.py",
    "wires/*/repair*.py": "wires/test_repair.py",
    "wires/repair/*.py": "wires/test_repair.py",
    "core/contract/repaired.py": "wires/test_repair.py",
    "wires/convert/*.py": "wires/test_convert.py",
    "wires/overflow/*.py": "wires/test_overflow.py",
    "wires/*/blocks.py": "wires/test_blocks.py",
    "wires/models.py": "wires/test_families.py",
    "wires/*/models.py": "wires/test_families.py",
    "wires/*/convert.py": "wires/test_convert.py",
    "wires/*/http.py": "exchange/test_routes.py",
    "wires/http.py": "exchange/test_routes.py",
    "wires/wire.py": "wires/test_wires.py",
    "wires/*/wire.py": "wires/test_wires.py",
    "wires/block.py": "wires/test_blocks.py",
    "wires/gemini/*.py": "wires/test_gemini.py",
    "wires/openai_responses/*.py": "wires/test_openai_responses.py",
    "wires/*/*.py": "wires/test_wire.py",
    "wires/usages.py": "wires/test_usage_golden.py",
    "wires/reported.py": "wires/test_reported.py",
    "wires/*.py": "wires/test_wire.py",
}


def own_of(module):
    """The test file of a module's own name, under its folder or beside the others of its room.

    A room's name is not repeated among the tests of its folders.
    """
    folder, _, name = module.rpartition("/")
    room, _, within = folder.partition("/")
    file = f"test_{name.lstrip('_')}"
    for place in (folder, room):
        if place and (TESTS / place / file).exists():
            return f"{place}/{file}"
    return f"{within}/{file}".lstrip("/")


def nearest_of(module):
    if (TESTS / own_of(module)).exists():
        return own_of(module)
    return next(
        (
            file
            for pattern, file in NEAREST.items()
            if fnmatch(module, pattern)
        ),
        None,
    )


def test_every_module_has_a_nearest_test_file():
    """Where one has none: write the file of its own name, or name the nearest above."""
    nearest = {module: nearest_of(module) for module in MODULES}
    assert [module for module, file in nearest.items() if file is None] == []
    assert [
        file for file in nearest.values() if not (TESTS / file).exists()
    ] == []
