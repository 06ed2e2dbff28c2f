"""Layer 3 of the three-layer document in a chat service: its record, its prompt, its loop."""

import pytest

from tests import histories
from tests.histories import Call, Turn
from tests.presets.three_layer import words
from tests.servers import Call as Asks
from tests.servers import Reply as Says
from ullage import Limits, Session, summarise
from ullage.documents.conversation import (
    CompactionResult,
    Conversation,
    ConversationStore,
)
from ullage.documents.presets.three_layer import COMPACTION
from ullage.policy.stages import rough
from ullage.policy.stages.compact import oldest_rough

LIMITS = Limits(window_tokens=24_000, output_reserve_tokens=1_000)
WRITTEN = """## Conversation Summary
### Context
A loader.
### Key Decisions
### Changes Made
### Current State
Reading."""
TURNS = [
    Turn(
        said=f"Step {n}.",
        calls=(Call("bash", f"run {n}", words(4_000, f"{n:02}")),),
    )
    for n in range(24)
]
MESSAGES = histories.wire("openai-chat", TURNS)


def conversation(tmp_path, messages, **more):
    kept = ConversationStore(tmp_path / "chat.db")
    made = Conversation(kept, "s", "gpt-4.1", limits=LIMITS, **more)
    made.append(messages)
    return made, kept


@pytest.mark.says(
    "three-layer-management",
    "Compaction Service",
    """public record CompactionResult
{
    public bool WasCompacted { get; init; }
    public int TokensBefore { get; init; }
    public int TokensAfter { get; init; }
    public int MessagesCompacted { get; init; }
    public string? Summary { get; init; }
    public Guid? CompactionPartId { get; init; }""",
    lives="ullage.documents.conversation.CompactionResult",
)
@pytest.mark.says(
    "three-layer-management",
    "Compaction Service",
    """        if (currentTokens < threshold)
        {
            return new CompactionResult
            {
                WasCompacted = false,
                TokensBefore = currentTokens,
                TokensAfter = currentTokens
            };
        }

        _logger.LogInformation(
            "Starting conversation compaction: {Current} tokens (threshold: {Threshold})",
            currentTokens, threshold);""",
)
@pytest.mark.says(
    "three-layer-management",
    "Compaction Service",
    """            return new CompactionResult
            {
                WasCompacted = false,
                TokensBefore = currentTokens,
                TokensAfter = currentTokens
            };""",
)
@pytest.mark.says(
    "three-layer-management",
    "Compaction Service",
    """        var summaryTokens = _tokenEstimator.EstimateTokens(summary);
        var tokensAfter = currentTokens - accumulatedTokens + summaryTokens;

        _logger.LogInformation(
            "Compaction complete: {Before} → {After} tokens ({Count} messages compacted)",
            currentTokens, tokensAfter, messagesToCompact.Count);

        return new CompactionResult
        {
            WasCompacted = true,
            TokensBefore = currentTokens,
            TokensAfter = tokensAfter,
            MessagesCompacted = messagesToCompact.Count,
            Summary = summary,
            CompactionPartId = compactionPart.Id
        };""",
)
@pytest.mark.says(
    "three-layer-management",
    "Compaction Service",
    """        var summary = await GenerateSummaryAsync(messagesToCompact, ct);""",
)
@pytest.mark.says(
    "three-layer-management",
    "Testing Strategy",
    """public async Task CompactConversation_GeneratesSummary()
{
    // Verify LLM summarization and marker insertion
}""",
    lives="ullage.documents.conversation.Conversation.fit",
)
def test_one_compaction_and_what_it_tells(tmp_path):
    made, kept = conversation(
        tmp_path, MESSAGES[:20], summariser=lambda asked: WRITTEN
    )
    made.fit({"model": "gpt-4.1"})
    held = made.session.window.estimate
    assert made.compacted == CompactionResult(
        tokens_before=held, tokens_after=held
    )
    made.append(MESSAGES[20:])
    view = made.fit({"model": "gpt-4.1"})["messages"]
    part, told = kept.newest_compaction("s"), made.compacted
    assert told.was_compacted
    assert told.messages_compacted == part.compacted_message_count
    assert (told.summary, told.compaction_part_id) == (part.summary, part.id)
    assert told.summary.startswith(WRITTEN)
    assert view[0]["content"] == part.text
    assert (
        told.tokens_after == made.session.window.estimate < told.tokens_before
    )
    summary = made.session.window.meter.text(part.text)
    reckoned = told.tokens_before - part.compacted_token_count + summary
    assert (
        abs(told.tokens_after - reckoned) < 16 * part.compacted_message_count
    )  # framing, names
    (event,) = (
        event for event in made.session.events if event.kind == "compacted"
    )
    assert event.tokens_before > event.tokens_after
    assert event.why.startswith("messages 1 to ")


def older_half_by_the_document(messages, current_tokens, target_tokens):
    """The loop of `CompactConversationAsync`, statement by statement."""
    tokens_to_remove = current_tokens - target_tokens
    compacted, accumulated = 0, 0
    for message in messages:
        tokens = rough.message_tokens(message, {})
        if accumulated + tokens > tokens_to_remove:
            break
        compacted += 1
        accumulated += tokens
    return compacted


@pytest.mark.says(
    "three-layer-management",
    "Compaction Service",
    """        // Calculate target size (50% of context)
        var targetTokens = (int)(contextLimit * TokenConstants.CompactionTargetPercent / 100.0);

        // Find messages to compact (older half of conversation)
        var tokensToRemove = currentTokens - targetTokens;
        var messagesToCompact = new List<Message>();
        var accumulatedTokens = 0;

        foreach (var message in messages)
        {
            var messageTokens = _tokenEstimator.EstimateMessageTokens(message);
            if (accumulatedTokens + messageTokens > tokensToRemove)
                break;

            messagesToCompact.Add(message);
            accumulatedTokens += messageTokens;
        }""",
    lives="ullage.policy.stages.compact.oldest_rough",
)
@pytest.mark.parametrize("steps", [6, 12, 24])
@pytest.mark.parametrize("target", [0.2, 0.5])
def test_the_older_half_goes_as_the_document_counts_it(steps, target):
    session = Session("gpt-4.1", limits=Limits(window_tokens=30_000))
    session.fit(histories.request("openai-chat", MESSAGES[: 2 * steps + 1]))
    window = session.window
    held, context = rough.view_tokens(window), window.context_tokens
    said = window.transcript.messages
    expected = older_half_by_the_document(said, held, int(context * target))
    assert min(oldest_rough(window, 0, target=target), window.size) == expected


@pytest.mark.says(
    "three-layer-management",
    "Token Estimator",
    """            CompactionPart cp => EstimateTokens(cp.Summary ?? ""),""",
)
@pytest.mark.says(
    "three-layer-management",
    "Token Estimator",
    """        if (!string.IsNullOrEmpty(message.ToolCallsJson))
        {
            tokens += EstimateTokens(message.ToolCallsJson);
        }""",
    lives="ullage.policy.stages.rough.message_tokens",
)
def test_a_summary_and_a_call_are_counted_like_any_text():
    session = Session("gpt-4.1", policy="three_layer", limits=LIMITS)
    request = histories.request("openai-chat", MESSAGES[:9])
    session.compact(request)
    session.fit(request)
    window = session.window
    ((start, stop, span),) = window.summaries
    assert (start, stop) == (0, 7)
    kept = [
        rough.message_tokens(each, {})
        for each in window.transcript.messages[stop:]
    ]
    assert rough.view_tokens(window) == -(-len(span.text) // 4) + sum(kept)
    calling = window.transcript.messages[1]
    (call,) = calling.calls
    texts = ("Step 0.", call.name, call.arguments)
    assert rough.message_tokens(calling, {}) == 4 + sum(
        -(-len(text) // 4) for text in texts
    )


@pytest.mark.says(
    "three-layer-management",
    "Compaction Service",
    'private const string CompactionPrompt = """',
)
@pytest.mark.says(
    "three-layer-management",
    "Compaction Service",
    """Focus on:
        1. Key decisions made
        2. Important context and requirements discovered
        3. Files that were modified and why
        4. Current state of the task
        5. Any pending items or blockers

        Format the summary as:
        ## Conversation Summary

        ### Context
        [Brief context of what was being worked on]

        ### Key Decisions
        - [Decision 1]
        - [Decision 2]

        ### Changes Made
        - [File/change 1]
        - [File/change 2]

        ### Current State
        [Where things stand now]

        ### Pending Items
        - [If any]""",
    lives="ullage.documents.presets.three_layer.COMPACTION",
)
def test_the_prompt_is_the_documents():
    lines = COMPACTION.system.splitlines()
    assert [line for line in lines if line.startswith("#")] == [
        "## Conversation Summary",
        "### Context",
        "### Key Decisions",
        "### Changes Made",
        "### Current State",
        "### Pending Items",
    ]
    focus = lines.index("Focus on:")
    assert [
        line.partition(". ")[2] for line in lines[focus + 1 : focus + 6]
    ] == [
        "Key decisions made",
        "Important context and requirements discovered",
        "Files that were modified and why",
        "Current state of the task",
        "Any pending items or blockers",
    ]
    shapes = [line for line in lines if "[" in line]
    assert shapes == [
        "[Brief context of what was being worked on]",
        "- [Decision 1]",
        "- [Decision 2]",
        "- [File/change 1]",
        "- [File/change 2]",
        "[Where things stand now]",
        "- [If any]",
    ]


@pytest.mark.says(
    "three-layer-management",
    "Compaction Service",
    """        foreach (var message in messages)
        {
            conversationText.AppendLine($"[{message.Role}]");
            conversationText.AppendLine(message.Content);
            conversationText.AppendLine();
        }

        var request = new ChatCompletionRequest
        {
            Messages = new List<ChatMessage>
            {
                new() { Role = "system", Content = CompactionPrompt },
""",
)
@pytest.mark.says(
    "three-layer-management",
    "Compaction Service",
    'new() { Role = "user", Content = $"Summarize this conversation:\\n\\n{conversationText}" }',
)
@pytest.mark.says(
    "three-layer-management",
    "Compaction Service",
    """            },
            MaxTokens = 2000
        };

        var response = await _chatProvider.CompleteAsync(request, ct);""",
    lives="ullage.session.summarise.openai",
)
def test_the_request_for_a_summary_on_the_real_sdk(serve, tmp_path):
    server = serve("openai-chat", [WRITTEN], strict=True)
    writer = summarise.openai(server.client(), "gpt-4.1")
    made, kept = conversation(tmp_path, MESSAGES, summariser=writer)
    made.fit({"model": "gpt-4.1"})
    body = server.requests[0].body
    system, user = body["messages"]
    assert system == {"role": "system", "content": COMPACTION.system}
    assert user["role"] == "user"
    head = "Summarize this conversation:\n\n[user]\nFind out why the tests fail.\n\n[assistant]\n"
    assert user["content"].startswith(head)
    assert body["max_completion_tokens"] == 2_000
    assert "tools" not in body
    assert kept.newest_compaction("s").summary.startswith(WRITTEN)
    assert made.usage.input_tokens > 0


def run_async(client, kept, user_input, tool, max_iterations):
    """`RunAsync` of the document, its three services in the conversation."""
    messages = kept.messages
    kept.append([{"role": "user", "content": user_input}])
    assert kept.messages[:-1] == messages
    iteration = 0
    while iteration < max_iterations:
        iteration += 1
        reply = client.chat.completions.create(
            **kept.fit({"model": "gpt-4.1"})
        )
        kept.session.observe(reply)
        message = reply.choices[0].message
        kept.append([message.model_dump(exclude_none=True)])
        if not message.tool_calls:
            break
        for call in message.tool_calls:
            kept.append(
                [{"role": "tool", "tool_call_id": call.id, "content": tool()}]
            )
    return kept.messages[-1].get("content")


@pytest.mark.says(
    "three-layer-management",
    "Integration with ChatService",
    """    // Load messages with compaction boundary awareness
    var messages = await _compactionService.LoadMessagesWithCompactionBoundaryAsync(
        session.Id, ct);

    var chatMessages = messages.Select(m => m.ToChatMessage()).ToList();
    chatMessages.Add(new ChatMessage { Role = "user", Content = userInput });

    var iteration = 0;
    while (iteration < _maxIterations)
    {
        iteration++;""",
    lives="ullage.documents.conversation.Conversation",
)
@pytest.mark.says(
    "three-layer-management",
    "Integration with ChatService",
    """        // Layer 3: Compact if still over threshold
        currentTokens = _tokenEstimator.EstimateRequestTokens(
            BuildRequest(chatMessages));

        if (currentTokens > contextLimit * TokenConstants.CompactionThreshold)
        {
            var compactionResult = await _compactionService.CompactConversationAsync(
                session.Id,
                await _messageRepository.GetBySessionIdAsync(session.Id, ct),
                currentTokens,
                contextLimit,
                ct);

            if (compactionResult.WasCompacted)
            {
                // Reload messages with compaction boundary
                messages = await _compactionService.LoadMessagesWithCompactionBoundaryAsync(
                    session.Id, ct);
                chatMessages = messages.Select(m => m.ToChatMessage()).ToList();
            }
        }

        // Execute LLM call
        var response = await ExecuteLlmAsync(chatMessages, ct);""",
    lives="ullage.documents.conversation.Conversation.fit",
)
@pytest.mark.says(
    "three-layer-management",
    "Integration with ChatService",
    """            break;  // No more tool calls
        }
    }

    return ExtractFinalResponse(chatMessages);""",
)
def test_a_chat_service_goes_on_from_the_boundary(serve, tmp_path):
    steps = [
        Says(f"Step {n}.", [Asks("bash", {"command": f"run {n}"})])
        for n in range(30)
    ]
    server = serve(
        "openai-chat", [*steps, "Done.", "Still here."], strict=True
    )
    kept = ConversationStore(tmp_path / "chat.db")
    first = Conversation(kept, "s", "gpt-4.1", limits=LIMITS)
    said = run_async(server.client(), first, "Go.", lambda: words(4_000), 40)
    assert said == "Done."
    assert len(server.requests) == 31
    again = Conversation(kept, "s", "gpt-4.1", limits=LIMITS)
    assert again.messages == first.messages
    assert again.messages[0]["content"].startswith(
        "[Previous conversation compacted]"
    )
    assert (
        run_async(server.client(), again, "And now?", lambda: "", 40)
        == "Still here."
    )
    assert (
        len(server.requests[-1].body["messages"]) < 40 < len(kept.history("s"))
    )
    assert "Go." in server.requests[-1].body["messages"][0]["content"]


def test_the_loop_of_the_service_is_capped(serve, tmp_path):
    server = serve(
        "openai-chat", [Says("Again.", [Asks("bash")]) for _ in range(9)]
    )
    made = Conversation(
        ConversationStore(tmp_path / "chat.db"), "s", "gpt-4.1", limits=LIMITS
    )
    run_async(server.client(), made, "Go.", lambda: "ok", 3)
    assert len(server.requests) == 3
