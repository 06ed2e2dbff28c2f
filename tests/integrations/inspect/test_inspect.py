"""Evals of Inspect, by its own runner and written to its own logs, kept within the window."""

from functools import partial

import pytest

pytest.importorskip(
    "inspect_ai", reason="inspect-ai is not installed (make inspect)"
)

from inspect_ai.agent import agent, as_solver, as_tool, react
from inspect_ai.log import read_eval_log
from inspect_ai.model import (
    ChatMessageAssistant,
    ChatMessageTool,
    ChatMessageUser,
    ContentAudio,
    ContentData,
    ContentDocument,
    ContentImage,
    ContentReasoning,
    ContentText,
    ContentVideo,
)
from inspect_ai.solver import solver
from inspect_ai.tool import ToolCall, ToolCallError

from tests.integrations.inspect.world import (
    GREP,
    Script,
    calls,
    evaluate,
    look,
    recalls,
    results,
    run_task,
    said,
    says,
    shown,
    text_of,
    too_long,
    turn,
    usage,
)
from tests.integrations.outputs import NEEDLE, big, page, refs_in
from ullage import Budget, FormatError, Limits
from ullage.integrations.inspect_ai import HOST, UllageModel
from ullage.integrations.inspect_ai._messages import content_of

pytestmark = pytest.mark.filterwarnings(
    "ignore"
)  # Inspect leaves files and loops open
SMALL = Limits(window_tokens=16_000, output_reserve_tokens=1_000)


def two_looks():
    both = calls(("look", {"n": 1}), ("look", {"n": 2}))
    return [both, recalls, says("In the fourth drawer.")]


def turns(count, start=1, **more):
    return [
        calls(("turn", {"n": n}), **more) for n in range(start, start + count)
    ]


def test_two_large_results_and_a_recall(tmp_path):
    script = Script(two_looks())
    log = read_eval_log(evaluate(script, UllageModel(), tmp_path).location)
    assert (log.status, log.error) == ("success", None)
    (sample,) = log.samples
    assert sample.output.completion == "In the fourth drawer."
    kept = results(sample.messages)
    assert kept[:2] == [big(1), big(2)]
    assert NEEDLE in kept[2]
    assert len(text_of(script.sent[1])) < 20_000
    assert GREP in [tool.name for tool in script.asked[0][0]]


def test_what_is_sent_is_legal_and_shares_its_prefix_over_sixty_calls(
    tmp_path,
):
    def honest(n, messages):
        return calls(
            ("turn", {"n": n}), counts=usage(len(text_of(messages)) // 3)
        )

    script = Script(
        [*(partial(honest, n) for n in range(1, 61)), says("Done.")]
    )
    (sample,) = evaluate(script, UllageModel(limits=SMALL), tmp_path).samples
    assert results(sample.messages) == [page(n) for n in range(1, 61)]
    kept = 0  # times that nothing of what was sent before has changed
    for before, after in zip(script.sent, script.sent[1:], strict=False):
        assert len(text_of(after)) / 3 < 16_000
        assert paired(after)
        kept += shown(after)[: len(before)] == shown(before)
    assert kept > 40


def paired(messages):
    """Whether each call is answered before the model speaks again."""
    waiting = set()
    for message in messages:
        if message.role == "tool":
            waiting.remove(message.tool_call_id)
        elif waiting:
            return False
        waiting |= {
            call.id for call in getattr(message, "tool_calls", None) or ()
        }
    return not waiting


@solver
def goes_on(ullage, kept=None):
    """An agent; of a record it takes messages and store first, as a checkpoint of Inspect does."""

    async def solve(state, generate):
        if kept is not None:
            state.messages = kept.messages
            for key, value in kept.store.items():
                state.store.set(key, value)
        tools = [look(), turn(), *ullage.tools]
        return await as_solver(
            react(prompt=None, tools=tools, model=ullage.agent)
        )(state, generate)

    return solve


def test_a_restart_shows_the_same_bytes(tmp_path):
    steps = [*turns(30), says("Nothing.")]
    whole, first, second = (
        Script(steps),
        Script([*steps[:30], OSError("gone")]),
        Script(steps[30:]),
    )
    run_task(goes_on(UllageModel(limits=SMALL)), whole, tmp_path)
    broken = run_task(goes_on(UllageModel(limits=SMALL)), first, tmp_path)
    assert broken.status == "error"
    kept = read_eval_log(broken.location, resolve_attachments=True).samples[0]
    run_task(goes_on(UllageModel(limits=SMALL), kept), second, tmp_path)
    assert shown(second.sent[0]) == shown(whole.sent[-1])
    assert "[ullage" in text_of(second.sent[0])


def test_a_request_that_is_refused_once_is_cut_deeper(tmp_path):
    script = Script([*turns(12), too_long(), says("Done.")])
    (sample,) = evaluate(script, UllageModel(limits=SMALL), tmp_path).samples
    assert sample.output.completion == "Done."
    assert len(text_of(script.sent[-1])) < len(text_of(script.sent[-2])) * 0.8
    assert results(sample.messages) == [page(n) for n in range(1, 13)]


def test_what_is_refused_for_ever_ends_as_inspect_ends_it(tmp_path):
    script = Script([*turns(3), too_long(), too_long(), too_long()])
    (sample,) = evaluate(script, UllageModel(limits=SMALL), tmp_path).samples
    assert sample.output.stop_reason == "model_length"
    assert len(script.sent) == 5


def test_twelve_samples_do_not_open_each_others_outputs(tmp_path):
    def script(messages):
        n = int(next(m.text for m in messages if m.role == "user"))
        said = sum(m.role == "assistant" for m in messages)
        steps = [calls(("look", {"n": n})), recalls, says("Done.")]
        return steps[said](messages) if callable(steps[said]) else steps[said]

    ullage = UllageModel()
    log = evaluate(Script(script), ullage, tmp_path, map(str, range(12)))
    assert len(ullage.sessions) == 12
    for sample in log.samples:
        given = results(sample.messages)
        assert given[0] == big(int(sample.input))
        assert f"{NEEDLE} of cupboard {sample.input}\n" in given[1]


def test_an_agent_that_is_a_tool_has_a_conversation_of_its_own(tmp_path):
    ullage = UllageModel()

    @agent
    def searcher():
        """Searches a cupboard."""
        return react(
            name="searcher",
            description="Searches a cupboard.",
            tools=[look(), *ullage.tools],
            model=ullage.agent,
        )

    steps = [
        calls(("look", {"n": 1}), ("searcher", {"input": "Search two."})),
        calls(("look", {"n": 2})),
        recalls,
        says("In the fourth drawer."),
        recalls_first,
        says("There."),
    ]
    script = Script(steps)
    main = react(
        tools=[look(), as_tool(searcher()), *ullage.tools], model=ullage.agent
    )
    (sample,) = run_task(main, script, tmp_path).samples
    assert len(ullage.sessions) == 2
    assert f"{NEEDLE} of cupboard 2\n" in text_of(script.sent[3])
    assert f"{NEEDLE} of cupboard 1\n" in results(sample.messages)[-1]


def recalls_first(messages):
    """An output that searches what the first notice of the prompt names."""
    ref = refs_in(text_of(messages))[0]
    return calls((GREP, {"tool_call_id": ref, "pattern": "needle"}))


def test_a_recall_of_what_is_not_there_is_an_error_for_the_model(tmp_path):
    script = Script(
        [
            calls((GREP, {"tool_call_id": "0" * 16, "pattern": "x"})),
            says("Done."),
        ]
    )
    (sample,) = evaluate(script, UllageModel(), tmp_path).samples
    (result,) = [
        m for m in sample.messages if m.role == "tool" and m.function == GREP
    ]
    assert "nothing is kept under" in result.error.message


def test_reasoning_that_is_bound_is_not_left_behind_an_edit(tmp_path):
    thinking = turns(40, thought="Where may it be?")
    script = Script([*thinking, says("Done.")])
    (sample,) = evaluate(
        script, UllageModel(limits=SMALL), tmp_path, model="claude-sonnet-6"
    ).samples
    assert sum(bool(thoughts(m)) for m in sample.messages) == 40
    assert "[ullage" in text_of(script.sent[-1])
    for before, after in zip(script.sent, script.sent[1:], strict=False):
        edited = [
            old != new
            for old, new in zip(shown(before), shown(after), strict=False)
        ]
        if any(edited):
            behind = after[edited.index(True) : len(before)]
            assert not any(map(thoughts, behind))


def thoughts(message):
    return (
        []
        if isinstance(message.content, str)
        else [item for item in message.content if item.type == "reasoning"]
    )


def test_usage_is_counted_once(tmp_path):
    budget, cached = Budget(tokens=0), usage(100, 10, read=700, written=200)
    look_once = calls(("turn", {"n": 1}))
    script = Script([look_once, says("Done.", cached)])
    evaluate(script, UllageModel(budget=budget), tmp_path)
    spent = budget.spent
    assert (
        spent.calls,
        spent.usage.cache_read_tokens,
        spent.usage.cache_write_tokens,
    ) == (
        2,
        700,
        200,
    )
    assert (spent.usage.fresh_tokens, spent.usage.output_tokens) == (1_100, 20)


def test_the_last_request_of_a_budget_forbids_tools(tmp_path):
    script = Script([*turns(4), said("That is all."), said("More.")])
    evaluate(
        script,
        UllageModel(budget=Budget(tokens=4_000), limits=SMALL),
        tmp_path,
    )
    assert script.asked[4][1] == "none"


# The messages themselves

PNG = {"type": "image", "image": "data:image/png;base64," + "iVBORw0KGgo" * 40}


def test_every_kind_of_content_is_read():
    items = [
        ContentText(text="look"),
        ContentImage(image=PNG["image"]),
        ContentAudio(audio="UklGRg==", format="wav"),
        ContentVideo(video="https://example.com/v.mp4", format="mp4"),
        ContentDocument(document="data:application/pdf;base64,JVBERi0="),
        ContentData(data={"a": 1}),
        ContentReasoning(reasoning="hm", signature="c2ln"),
    ]
    message = HOST.parse(ChatMessageUser(content=items), "messages[0]")
    kinds = [type(part).__name__ for part in message.parts]
    assert kinds == [
        "Text",
        "Media",
        "Media",
        "Media",
        "Media",
        "Opaque",
        "Reasoning",
    ]
    assert [part.kind for part in message.parts[1:5]] == [
        "image",
        "audio",
        "document",
        "document",
    ]
    assert content_of(message.parts[1].block) == items[1]


@pytest.mark.parametrize(
    "raw", [7, None, {}, {"role": "tool", "content": "x"}]
)
def test_what_is_no_message_is_refused(raw):
    with pytest.raises(FormatError):
        HOST.parse(raw, "messages[0]")


def test_an_edited_message_is_another_one_and_its_record_untouched():
    call = ToolCall("c", "turn", {"n": 1})
    raw = ChatMessageAssistant(
        content=[ContentText(text="said")], tool_calls=[call]
    )
    message = HOST.parse(raw, "messages[0]")
    edited = HOST.edit(raw, message, [(0, 0, "shown"), (1, 0, '{"n":2}')])
    again = HOST.edit(raw, message, [(0, 0, "shown"), (1, 0, '{"n":2}')])
    assert edited.text == "shown"
    assert edited.tool_calls[0].arguments == {"n": 2}
    assert edited.id == again.id != raw.id
    assert (raw.text, call.arguments) == ("said", {"n": 1})


def test_an_error_is_read_as_what_providers_are_sent():
    error = ToolCallError("timeout", "It took too long.")
    raw = ChatMessageTool(
        content="", tool_call_id="c", function="turn", error=error
    )
    (result,) = HOST.parse(raw, "messages[0]").results
    assert (result.is_error, result.content[0].text) == (
        True,
        "It took too long.",
    )
    shown = HOST.edit(raw, HOST.parse(raw, "messages[0]"), [(0, 0, "Gone.")])
    assert (shown.error.message, raw.error.message) == (
        "Gone.",
        "It took too long.",
    )
