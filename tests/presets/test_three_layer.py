"""`three-layer-management.md` in its order: layer 1, layer 2, the estimator, the loop.

`tests.presets.three_layer` holds a second reading of the document's code, line for line, that
the preset is held against. Configuration, metrics and adoption are in
`test_three_layer_service.py`; bad input and changed settings in `test_three_layer_mutations.py`.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.presets.three_layer import (
    Asked,
    Part,
    call,
    pruned_by_the_document,
    result,
    tokens,
    truncated_by_the_document,
    truncated_line,
    words,
)
from ullage import Limits
from ullage.core.errors import RefNotFound
from ullage.core.history.canon import ref_of
from ullage.core.values.messages import (
    Media,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
)
from ullage.documents import NAMES
from ullage.documents.presets.three_layer import (
    TOOL_OUTPUT_LIMITS,
    ThreeLayerSettings,
)
from ullage.documents.services import (
    prune_messages,
    retrieve_spilled,
    truncate_output,
)
from ullage.policy.stages import rough
from ullage.policy.stages.shapes import size_of

SMALL = ThreeLayerSettings(
    max_output_lines=6,
    max_output_bytes=120,
    max_line_length=30,
    tool_output_limits={"read": 70, "default": 90},
    prune_protect_tokens=60,
    prune_minimum_tokens=40,
    prune_output_retain_chars=20,
    default_max_output_tokens=100,
)
"""Limits so small that generated texts meet every one of them."""


def limit_of(tool, settings):
    limits = {**TOOL_OUTPUT_LIMITS, **settings.tool_output_limits}
    return limits.get(tool, limits["default"])


# ── key constants ────────────────────────────────────────────────────────────────────────


@pytest.mark.says(
    "three-layer-management",
    "Key Constants",
    "public const int MaxOutputLines = 2_000;",
    lives="ullage.documents.presets.three_layer.ThreeLayerSettings",
)
@pytest.mark.says(
    "three-layer-management",
    "Target State (opencode-aligned)",
    "2000 lines max per output",
)
@pytest.mark.says(
    "three-layer-management",
    "Truncation Service",
    "bool needsTruncation = originalLines > TokenConstants.MaxOutputLines ||",
    lives="ullage.policy.stages.shapes.head_lines",
)
def test_2000_lines_stay_and_2001_do_not():
    whole = "\n".join(["a line of words"] * 2_000)
    assert truncate_output(whole, "bash").output is whole
    cut = truncate_output(whole + "\n" + "one more line " * 40, "bash")
    assert (cut.was_truncated, cut.original_lines, cut.truncated_lines) == (
        True,
        2_001,
        2_000,
    )


@pytest.mark.says(
    "three-layer-management",
    "Key Constants",
    "public const int MaxOutputBytes = 50 * 1024;  // 50KB",
    lives="ullage.documents.presets.three_layer.ThreeLayerSettings",
)
@pytest.mark.says(
    "three-layer-management",
    "Target State (opencode-aligned)",
    "50KB max size per output",
)
@pytest.mark.says(
    "three-layer-management",
    "Truncation Service",
    "originalBytes > TokenConstants.MaxOutputBytes ||",
    lives="ullage.policy.stages.shapes.head_lines",
)
@pytest.mark.says(
    "three-layer-management",
    "Truncation Service",
    "var originalBytes = Encoding.UTF8.GetByteCount(output);",
    lives="ullage.policy.stages.shorten.utf8_bytes",
)
def test_51200_bytes_of_utf8_stay_and_more_do_not():
    whole = ("é" * 99 + "\n") * 257  # 199 bytes a line
    exact = whole + "e" * (51_200 - 199 * 257)
    assert len(exact) < 30_000 < len(exact.encode()) == 51_200
    assert truncate_output(exact, "read").output is exact
    cut = truncate_output(exact + "e" * 200, "read")
    assert cut.was_truncated
    assert cut.original_bytes == 51_400
    assert cut.truncated_bytes <= 51_200


@pytest.mark.says(
    "three-layer-management",
    "Key Constants",
    "public const int MaxLineLength = 2_000;",
    lives="ullage.documents.presets.three_layer.ThreeLayerSettings",
)
@pytest.mark.says(
    "three-layer-management",
    "Truncation Service",
    """
    if (line.Length <= TokenConstants.MaxLineLength)
            return line;

        return line[..TokenConstants.MaxLineLength] + "... (line truncated)";
    """,
    lives="ullage.policy.stages.shapes.head_lines",
)
@pytest.mark.says(
    "three-layer-management",
    "Truncation Service",
    """
        var lines = output.Split('\\n');
        var truncated = lines.Select(TruncateLine);
        return string.Join('\\n', truncated);
    """,
    lives="ullage.policy.stages.shapes.head_lines",
)
def test_a_line_keeps_2000_characters_and_says_that_it_was_cut():
    exact = "x" * 2_000 + "\n" + "y" * 2_000
    assert truncate_output(exact, "bash").output is exact
    cut = truncate_output("a\n" + "x" * 3_000 + "\nb", "bash")
    *lines, ref = cut.output.split("\n")
    assert lines == ["a", "x" * 2_000 + "... (line truncated)", "b"]
    assert ref == f"[ref={cut.ref}, 3,004 characters in all]"


@pytest.mark.says(
    "three-layer-management",
    "Key Constants",
    """
    // Per-tool output limits (chars)
    public static readonly Dictionary<string, int> ToolOutputLimits = new()
    {
        ["read"] = 100_000,      // 100KB for file reads
        ["bash"] = 50_000,       // 50KB for command output
        ["grep"] = 30_000,       // 30KB for search results
        ["glob"] = 20_000,       // 20KB for file lists
        ["webfetch"] = 50_000,   // 50KB for web content
        ["websearch"] = 20_000,  // 20KB for search results
        ["list"] = 10_000,       // 10KB for directory listings
        ["default"] = 50_000     // Default limit
    """,
    lives="ullage.documents.presets.three_layer.TOOL_OUTPUT_LIMITS",
)
@pytest.mark.says(
    "three-layer-management",
    "Target State (opencode-aligned)",
    "Per-tool truncation rules",
)
@pytest.mark.says(
    "three-layer-management",
    "Truncation Service",
    """
    var charLimit = TokenConstants.ToolOutputLimits.GetValueOrDefault(
            toolName,
            TokenConstants.ToolOutputLimits["default"]);
    """,
    lives="ullage.policy.stages.shapes.head_lines",
)
@pytest.mark.says(
    "three-layer-management",
    "Truncation Service",
    "output.Length > charLimit;",
    lives="ullage.policy.stages.shapes.head_lines",
)
@pytest.mark.parametrize(
    ("tool", "chars"),
    [
        ("read", 100_000),
        ("bash", 50_000),
        ("grep", 30_000),
        ("glob", 20_000),
        ("webfetch", 50_000),
        ("websearch", 20_000),
        ("list", 10_000),
        ("default", 50_000),
        ("a tool nobody named", 50_000),
        ("Read", 50_000),
    ],
)
def test_each_tool_has_its_own_limit_of_characters(tool, chars):
    settings = ThreeLayerSettings(
        max_output_bytes=200_000, max_output_lines=9_000
    )
    exact = words(chars)
    assert truncate_output(exact, tool, settings).output is exact
    cut = truncate_output(words(chars + 400), tool, settings)
    assert cut.truncation_message
    assert (
        len(cut.output.partition("\n\n[ref=")[0])
        == cut.truncated_bytes
        == chars
    )


# ── layer 1 ──────────────────────────────────────────────────────────────────────────────


@pytest.mark.says(
    "three-layer-management",
    "Target State (opencode-aligned)",
    "Layer 1: TOOL OUTPUT TRUNCATION (Immediate)",
    lives="ullage.policy.stages.truncate",
)
def test_layer_1_is_immediate():
    """It acts on the first output there is, before that is ever sent."""
    asked = Asked().tool("\n".join(["line"] * 3_000))
    assert (
        "[Output truncated: 3000 → 2000 lines, 14.6KB → 9.8KB]"
        in asked.shown()[0]
    )
    assert asked.messages[-1]["content"] == "\n".join(["line"] * 3_000)


@pytest.mark.says(
    "three-layer-management",
    "Truncation Service",
    """
    if (!needsTruncation)
        {
            return new TruncationResult
            {
                Output = TruncateLineLength(output),
                WasTruncated = false,
                OriginalLines = originalLines,
                OriginalBytes = originalBytes,
                TruncatedLines = originalLines,
                TruncatedBytes = originalBytes
            };
        }
    """,
    lives="ullage.documents.services.truncate_output",
)
@pytest.mark.says(
    "three-layer-management",
    "Truncation Service",
    """
        var lines = output.Split('\\n');
        var originalLines = lines.Length;
    """,
    lives="ullage.policy.stages.shapes.text_size",
)
@pytest.mark.parametrize(
    "output", ["", "a", "a\nb\n", "é\r\n" * 9, "x" * 2_500]
)
def test_the_record_of_an_output_within_the_limits(output):
    told = truncate_output(output, "bash")
    assert told.output == "\n".join(
        truncated_line(line, ThreeLayerSettings())
        for line in output.split("\n")
    ) + (f"\n[ref={told.ref}, 2,500 characters in all]" if told.ref else "")
    assert (told.was_truncated, told.spill_path, told.truncation_message) == (
        False,
        None,
        None,
    )
    assert (
        told.original_lines == told.truncated_lines == len(output.split("\n"))
    )
    assert told.original_bytes == told.truncated_bytes == len(output.encode())


@pytest.mark.says(
    "three-layer-management",
    "Truncation Service",
    """
    public record TruncationResult
    {
    public string Output { get; init; } = string.Empty;
    public bool WasTruncated { get; init; }
    public int OriginalLines { get; init; }
    public int OriginalBytes { get; init; }
    public int TruncatedLines { get; init; }
    public int TruncatedBytes { get; init; }
    public string? SpillPath { get; init; }
    public string? TruncationMessage { get; init; }
    """,
    lives="ullage.documents.services.TruncationResult",
)
@pytest.mark.says(
    "three-layer-management",
    "Truncation Service",
    """
    return new TruncationResult
        {
            Output = truncatedOutput + "\\n\\n" + truncationMessage,
            WasTruncated = true,
            OriginalLines = originalLines,
            OriginalBytes = originalBytes,
            TruncatedLines = truncatedLines.Count,
            TruncatedBytes = currentBytes,
            SpillPath = actualSpillPath,
            TruncationMessage = truncationMessage
        };
    """,
    lives="ullage.documents.services.truncate_output",
)
@pytest.mark.says(
    "three-layer-management",
    "Truncation Service",
    """
    var truncationMessage = BuildTruncationMessage(
            originalLines, originalBytes,
            truncatedLines.Count, currentBytes,
            actualSpillPath);
    """,
    lives="ullage.policy.stages.shapes.head_lines",
)
@pytest.mark.says(
    "three-layer-management",
    "Truncation Service",
    """
        sb.AppendLine("---");
        sb.AppendLine($"[Output truncated: {origLines} → {truncLines} lines,
            {FormatBytes(origBytes)} → {FormatBytes(truncBytes)}]");

        if (spillPath != null)
        {
            sb.AppendLine($"[Full output saved to: {spillPath}]");
            sb.AppendLine("[Use 'read' tool with the path above to see full content]");
        }
    """,
    lives="ullage.documents.presets.three_layer",
)
def test_the_record_and_the_notice_to_the_character(tmp_path):
    output = "\n".join(["line"] * 3_000)
    told = truncate_output(output, "bash", spill_directory=tmp_path)
    path = f"{tmp_path}/{ref_of(output)}.txt"
    notice = (
        "---\n"
        "[Output truncated: 3000 → 2000 lines, 14.6KB → 9.8KB]\n"
        f"[Full output saved to: {path}]\n"
        "[Use 'read' tool with the path above to see full content]\n"
    )
    assert told.output == "\n".join(["line"] * 2_000) + "\n\n" + notice
    assert told.truncation_message == notice
    assert told.spill_path == path
    assert (told.was_truncated, told.original_lines, told.original_bytes) == (
        True,
        3_000,
        14_999,
    )
    assert (told.truncated_lines, told.truncated_bytes) == (2_000, 9_999)


def test_without_a_file_the_line_before_the_notice_names_the_ref():
    output = "\n".join(["line"] * 3_000)
    told = truncate_output(output, "bash")
    assert told.spill_path is None
    assert told.output.endswith(
        f"line\n\n[ref={told.ref}, 14,999 characters in all]\n"
        "---\n[Output truncated: 3000 → 2000 lines, 14.6KB → 9.8KB]\n"
    )


@pytest.mark.says(
    "three-layer-management",
    "Truncation Service",
    """
        foreach (var line in lines)
        {
            if (lineCount >= TokenConstants.MaxOutputLines)
                break;

            var truncatedLine = TruncateLine(line);
            var lineBytes = Encoding.UTF8.GetByteCount(truncatedLine) + 1; // +1 for newline

            if (currentBytes + lineBytes > TokenConstants.MaxOutputBytes)
                break;

            truncatedLines.Add(truncatedLine);
            currentBytes += lineBytes;
            lineCount++;
        }

        // Apply char limit
        var truncatedOutput = string.Join('\\n', truncatedLines);
        if (truncatedOutput.Length > charLimit)
        {
            truncatedOutput = truncatedOutput[..charLimit];
        }
    """,
    lives="ullage.policy.stages.shapes.head_lines",
)
@given(
    st.lists(
        st.one_of(st.just(""), st.just("a"), st.text("abc", max_size=60)),
        min_size=1,
        max_size=40,
    ),
    st.sampled_from(("read", "other")),
)
def test_what_is_shown_is_what_the_documents_code_shows(lines, tool):
    output = "\n".join(lines)
    told = truncate_output(output, tool, SMALL)
    expected = truncated_by_the_document(output, limit_of(tool, SMALL), SMALL)
    if expected is None:
        assert not told.was_truncated
    elif told.was_truncated:
        assert (
            told.output
            == f"{expected.body}\n\n" + told.output[len(expected.body) + 2 :]
        )
        assert told.output.endswith(told.truncation_message)
        assert (told.truncated_lines, told.truncated_bytes) == (
            expected.lines,
            expected.bytes,
        )
    else:
        assert told.output is output
        assert len(output) <= len(expected.body) + 160


@pytest.mark.says(
    "three-layer-management",
    "Truncation Service",
    """
    private static string FormatBytes(int bytes) => bytes switch
    {
        < 1024 => $"{bytes}B",
        < 1024 * 1024 => $"{bytes / 1024.0:F1}KB",
        _ => $"{bytes / (1024.0 * 1024.0):F1}MB"
    """,
    lives="ullage.policy.stages.shapes.size_of",
)
@pytest.mark.parametrize(
    ("count", "written"),
    [
        (0, "0B"),
        (1_023, "1023B"),
        (1_024, "1.0KB"),
        (1_280, "1.3KB"),  # 1.25: the document's language rounds halves up
        (9_999, "9.8KB"),
        (51_200, "50.0KB"),
        (1_048_575, "1024.0KB"),
        (1_048_576, "1.0MB"),
        (1_310_720, "1.3MB"),
        (2_500_000_000, "2384.2MB"),
    ],
)
def test_bytes_as_people_read_them(count, written):
    assert size_of(count) == written


@pytest.mark.says(
    "three-layer-management",
    "Truncation Service",
    """
        // Spill full output to disk if requested
        string? actualSpillPath = null;
        if (spillPath != null || originalBytes > TokenConstants.MaxOutputBytes)
        {
            actualSpillPath = spillPath ?? Path.Combine(
                _spillDirectory,
                $"{Guid.NewGuid():N}.txt");

            File.WriteAllText(actualSpillPath, output);
            _logger.LogDebug("Spilled {Bytes} bytes to {Path}", originalBytes, actualSpillPath);
        }
    """,
    lives="ullage.stores.SpillStore",
)
@pytest.mark.says(
    "three-layer-management",
    "Target State (opencode-aligned)",
    "Disk spillover for overflow",
    lives="ullage.stores.SpillStore",
)
@pytest.mark.says(
    "three-layer-management",
    "Truncation Service",
    """
    if (!File.Exists(spillPath))
            throw new FileNotFoundException($"Spill file not found: {spillPath}");

        return await File.ReadAllTextAsync(spillPath, ct);
    """,
    lives="ullage.documents.services.retrieve_spilled",
)
@pytest.mark.parametrize(
    "output",
    [words(60_000), "x\n" * 3_000, "é" * 2_500, "a\r\n\ud83d\x00" * 20_000],
)
def test_everything_cut_is_in_a_file_and_comes_back_whole(tmp_path, output):
    told = truncate_output(output, "bash", spill_directory=tmp_path / "spill")
    path = tmp_path / "spill" / f"{ref_of(output)}.txt"
    assert [path] == list((tmp_path / "spill").iterdir())
    assert told.spill_path == path.as_posix()
    assert told.spill_path in told.output
    assert retrieve_spilled(told.spill_path) == output


def test_a_spill_file_that_is_not_there_is_a_typed_error(tmp_path):
    told = truncate_output(
        words(60_000), "bash", spill_directory=tmp_path / "spill"
    )
    (tmp_path / "spill" / f"{told.ref}.txt").unlink()
    for path in (told.spill_path, tmp_path / "nowhere" / "x.txt"):
        with pytest.raises(RefNotFound, match=r"^Spill file not found: "):
            retrieve_spilled(path)
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.says(
    "three-layer-management",
    "Truncation Service",
    """
    _spillDirectory = Path.Combine(
            Path.GetDirectoryName(settings.Value.DatabasePath) ?? "data",
            "spill");
        Directory.CreateDirectory(_spillDirectory);
    """,
    lives="ullage.stores.with_files",
)
def test_the_files_are_beside_the_database(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    output = words(60_000)
    asked = Asked(store=tmp_path / "kept" / "chat.db").tool(output)
    path = tmp_path / "kept" / "spill" / f"{ref_of(output)}.txt"
    assert (
        f"[Full output saved to: {path}]\n[Use 'read' tool" in asked.shown()[0]
    )
    assert path.read_text() == output
    asked = Asked(ThreeLayerSettings(enable_disk_spillover=True)).tool(output)
    assert (
        f"[Full output saved to: data/spill/{ref_of(output)}.txt]"
        in asked.shown()[0]
    )
    assert (tmp_path / "data" / "spill" / path.name).read_text() == output


def test_by_its_bare_name_it_writes_nothing_without_a_database(
    tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    assert "three_layer" in NAMES
    asked = Asked(policy="three_layer").tool(words(60_000))
    assert "[ref=" in asked.shown()[0]
    assert "saved to" not in asked.shown()[0]
    assert list(tmp_path.iterdir()) == []


# ── layer 2 ──────────────────────────────────────────────────────────────────────────────

SIZE = 40_000
"""Characters of a result that stays whole: 10,000 of the document's tokens."""


def nearly_full(results=10, **more):
    """A session just under 85 % of the window of 128,000: at the next result it is over."""
    asked = Asked(**more)
    for number in range(results):
        asked.tool(words(SIZE, f"{number:02}"))
    return asked


@pytest.mark.says(
    "three-layer-management",
    "Key Constants",
    """
    // Context limits (configurable per model)
    public const int DefaultContextWindow = 128_000;
    """,
    lives="ullage.documents.presets.three_layer.ThreeLayerSettings",
)
@pytest.mark.says(
    "three-layer-management",
    "Integration with ChatService",
    "var contextLimit = await GetContextLimitAsync(session);",
    lives="ullage.core.contract.policy.Policy",
)
def test_the_window_is_the_models_and_128000_where_nobody_knows_it():
    assert Asked().session.window.context_tokens == 128_000
    assert [event.why for event in Asked().told("unknown_model")] == [
        "no window is known for 'nobody-knows'; 128,000 tokens are assumed"
    ]
    assert Asked(model="gpt-4.1").session.window.context_tokens == 1_000_000
    small = Asked(limits=Limits(window_tokens=9_000))
    assert small.session.window.context_tokens == 9_000


@pytest.mark.says(
    "three-layer-management",
    "Integration with ChatService",
    """
        // Layer 2: Prune if needed
        if (currentTokens > contextLimit * 0.85)
        {
    """,
    lives="ullage.policy.stages.pressure.rough_over",
)
@pytest.mark.says(
    "three-layer-management",
    "Target State (opencode-aligned)",
    "Layer 2: TOOL OUTPUT PRUNING (When approaching limit)",
    lives="ullage.policy.stages.prune",
)
@pytest.mark.parametrize(("more", "is_over"), [(0, False), (1, True)])
def test_pruning_begins_over_85_percent_of_the_window(more, is_over):
    asked = nearly_full()
    room = 108_800 - rough.view_tokens(asked.session.window)  # 85 % of 128,000
    overhead = 2 * 4 + 1 + 1  # two messages, a name, the arguments
    asked.tool(words(4 * (room - overhead + more)))
    assert bool(asked.told("pruned")) == is_over
    if not is_over:
        assert rough.view_tokens(asked.session.window) == 108_800


@pytest.mark.says(
    "three-layer-management",
    "Key Constants",
    "public const int DefaultMaxOutputTokens = 16_384;",
    lives="ullage.documents.presets.three_layer.ThreeLayerSettings",
)
@pytest.mark.says(
    "three-layer-management",
    "Pruning Service",
    """
        var availableForOutput = contextLimit - TokenConstants.DefaultMaxOutputTokens;
        if (currentTokens < availableForOutput)
        {
            return new PruneResult
            {
                PrunedParts = parts.ToList(),
                TokensBefore = currentTokens,
                TokensAfter = currentTokens,
                PartsPruned = 0,
                WasPruned = false
            };
        }
    """,
    lives="ullage.policy.stages.pressure.rough_over",
)
@pytest.mark.parametrize(
    ("held", "pruned"), [(100_000 - 16_385, 0), (100_000 - 16_384, 3)]
)
def test_pruning_begins_where_the_answer_is_short_of_room(held, pruned):
    """83,616 of a window of 100,000: not yet 85 %, but only 16,384 are left."""
    messages = conversation(8)
    told = prune_messages(messages, held, 100_000)
    assert told.parts_pruned == pruned
    if not pruned:
        assert all(
            a is b for a, b in zip(told.pruned_parts, messages, strict=True)
        )
        assert (told.tokens_before, told.tokens_after, told.was_pruned) == (
            held,
            held,
            False,
        )


def conversation(results, size=SIZE):
    messages = [{"role": "user", "content": "Go."}]
    for number in range(results):
        messages += [call(number), result(number, words(size, f"{number:02}"))]
    return messages


@pytest.mark.says(
    "three-layer-management",
    "Key Constants",
    "public const int PruneProtectTokens = 40_000;   // Don't prune if under this",
    lives="ullage.documents.presets.three_layer.ThreeLayerSettings",
)
@pytest.mark.says(
    "three-layer-management",
    "Pruning Service",
    """
        // Don't prune if we don't have enough tokens yet
        if (currentTokens < TokenConstants.PruneProtectTokens)
        {
            return new PruneResult
            {
                PrunedParts = parts.ToList(),
                TokensBefore = currentTokens,
                TokensAfter = currentTokens,
                PartsPruned = 0,
                WasPruned = false
            };
        }
    """,
    lives="ullage.policy.stages.pressure.rough_over",
)
@pytest.mark.parametrize(
    ("held", "is_pruned"), [(39_999, False), (40_000, True)]
)
def test_nothing_is_pruned_under_40000_tokens(held, is_pruned):
    assert (
        prune_messages(conversation(8), held, 20_000).was_pruned == is_pruned
    )


@pytest.mark.says(
    "three-layer-management",
    "Target State (opencode-aligned)",
    "Protect first 40K tokens (PRUNE_PROTECT)",
    lives="ullage.policy.stages.pressure.newest_rough",
)
@pytest.mark.says(
    "three-layer-management",
    "Pruning Service",
    """
        // Process parts from oldest to newest
        // Protect recent parts (within PruneProtect window)
    """,
    lives="ullage.policy.stages.pressure.newest_rough",
)
@pytest.mark.says(
    "three-layer-management",
    "Pruning Service",
    """
        for (int i = parts.Count - 1; i >= 0; i--)
        {
            var partTokens = _tokenEstimator.EstimateTokens(parts[i]);
            if (protectedTokens + partTokens > TokenConstants.PruneProtectTokens)
            {
                protectedIndex = i + 1;
                break;
            }
            protectedTokens += partTokens;
        }
    """,
    lives="ullage.policy.stages.pressure.newest_rough",
)
@pytest.mark.says(
    "three-layer-management",
    "Pruning Service",
    """
            // Protect recent parts
            if (i >= protectedIndex)
            {
                prunedParts.Add(part);
                continue;
            }
    """,
    lives="ullage.policy.stages.prune.results_only",
)
@pytest.mark.says(
    "three-layer-management",
    "Testing Strategy",
    """
    public void PruneMessages_ProtectsRecentContent()
    {
        // Verify recent messages are not pruned
    """,
)
@pytest.mark.parametrize(("spare", "kept"), [(0, 4), (-1, 3)])
def test_the_newest_40000_tokens_are_never_pruned(spare, kept):
    """Four results of 9,999 and their calls' arguments are 40,000: one token more, and only
    three of them stay."""
    settings = ThreeLayerSettings(prune_minimum_tokens=10**9)
    messages = conversation(8, 4 * 9_999 - 4 * spare)
    told = prune_messages(messages, 128_000, 128_000, settings)
    flags = [
        told.is_pruned[n]
        for n, m in enumerate(messages)
        if m["role"] == "tool"
    ]
    assert flags == [True] * (8 - kept) + [False] * kept


@pytest.mark.says(
    "three-layer-management",
    "Target State (opencode-aligned)",
    "Keep tool invocation metadata",
    lives="ullage.policy.stages.prune.results_only",
)
@pytest.mark.says(
    "three-layer-management",
    "Pruning Service",
    """
            // Only prune tool output parts
            if (part is ToolPart toolPart
                && toolPart.Output?.Length > TokenConstants.PruneOutputRetainChars)
            {
    """,
    lives="ullage.policy.stages.prune.results_only",
)
@pytest.mark.says(
    "three-layer-management",
    "Pruning Service",
    """
            else
            {
                prunedParts.Add(part);
            }
    """,
    lives="ullage.policy.stages.prune.results_only",
)
def test_only_outputs_are_pruned_and_the_calls_stay():
    messages = conversation(8)
    messages[1:1] = [
        {"role": "user", "content": words(30_000)},
        {
            **call("large", "write", {"text": words(30_000)}),
            "content": words(30_000),
        },
        result("large", "x" * 2_000),
    ]
    told = prune_messages(messages, 128_000, 128_000)
    touched = [n for n, is_pruned in enumerate(told.is_pruned) if is_pruned]
    assert touched == [5, 7, 9]
    for before, after in zip(messages, told.pruned_parts, strict=True):
        assert (
            after is before or after["tool_call_id"] == before["tool_call_id"]
        )


@pytest.mark.says(
    "three-layer-management",
    "Key Constants",
    "public const int PruneOutputRetainChars = 2_000; // Keep first N chars of pruned output",
    lives="ullage.documents.presets.three_layer.ThreeLayerSettings",
)
@pytest.mark.says(
    "three-layer-management",
    "Pruning Service",
    """
                var prunedOutput = toolPart.Output[..TokenConstants.PruneOutputRetainChars];
                var originalTokens = _tokenEstimator.EstimateTokens(toolPart.Output);
                var prunedTokens = _tokenEstimator.EstimateTokens(prunedOutput);

                prunedParts.Add(toolPart with
                {
                    Output = prunedOutput + $"\\n\\n[Output pruned:
                        kept first {TokenConstants.PruneOutputRetainChars} chars]",
                    IsPruned = true
                });

                tokensRemoved += originalTokens - prunedTokens;
                partsPruned++;
    """,
    lives="ullage.policy.stages.placeholders.head_and_marker",
)
def test_a_pruned_output_to_the_character():
    messages = conversation(8)
    told = prune_messages(messages, 100_000, 100_000)
    (first, second, third) = (
        n for n, is_pruned in enumerate(told.is_pruned) if is_pruned
    )
    before = messages[first]["content"]
    assert told.pruned_parts[first]["content"] == (
        f"{before[:2_000]}\n\n[ref={ref_of(before)}, 40,000 characters in all]\n"
        "[Output pruned: kept first 2000 chars]"
    )
    assert (first, second, third) == (2, 4, 6)
    assert told.outputs[0].text is before
    assert told.tokens_after == 100_000 - 3 * (10_000 - 500)


@pytest.mark.says(
    "three-layer-management",
    "Key Constants",
    "public const int PruneMinimumTokens = 20_000;   // Minimum reduction target",
    lives="ullage.documents.presets.three_layer.ThreeLayerSettings",
)
@pytest.mark.says(
    "three-layer-management",
    "Target State (opencode-aligned)",
    "Min 20K token reduction (PRUNE_MINIMUM)",
    lives="ullage.policy.stages.prune",
)
@pytest.mark.says(
    "three-layer-management",
    "Pruning Service",
    """
                // Stop if we've removed enough
                if (tokensRemoved >= TokenConstants.PruneMinimumTokens)
                {
                    // Add remaining parts unpruned
                    for (int j = i + 1; j < parts.Count; j++)
                    {
                        prunedParts.Add(parts[j]);
                    }
                    break;
                }
    """,
    lives="ullage.policy.stages.prune",
)
@pytest.mark.says(
    "three-layer-management",
    "Performance Considerations",
    "**Incremental Pruning**: Stop pruning once minimum reduction achieved",
    lives="ullage.policy.stages.prune",
)
@pytest.mark.parametrize(("size", "pruned"), [(42_000, 2), (41_996, 3)])
def test_it_stops_when_20000_tokens_are_won(size, pruned):
    """Two of 10,500 less 500 are enough; one token less, and a third has to go."""
    told = prune_messages(conversation(9, size), 128_000, 128_000)
    assert told.parts_pruned == pruned


@pytest.mark.says(
    "three-layer-management",
    "Target State (opencode-aligned)",
    "Progressive old output removal",
    lives="ullage.policy.stages.prune",
)
@pytest.mark.says(
    "three-layer-management",
    "Pruning Service",
    """
        // Prune older tool outputs
        for (int i = 0; i < parts.Count; i++)
        {
    """,
    lives="ullage.policy.stages.prune.results_only",
)
def test_the_oldest_go_first_and_more_when_it_is_full_again():
    asked = nearly_full(11)
    seen = []
    for number in range(11, 19):
        flags = [
            text.endswith("[Output pruned: kept first 2000 chars]")
            for text in asked.shown()
        ]
        assert flags == sorted(flags, reverse=True)
        seen.append(sum(flags))
        asked.tool(words(SIZE, f"{number:02}"))
    assert seen == [3, 3, 3, 6, 6, 6, 9, 9]
    assert not asked.told("condensed")


@given(
    st.lists(st.integers(0, 400), min_size=1, max_size=14),
    st.lists(st.integers(0, 200), min_size=14, max_size=14),
    st.integers(0, 900),
    st.integers(150, 900),
)
def test_what_is_pruned_is_what_the_documents_code_prunes(
    sizes, said, held, window
):
    messages, parts = (
        [{"role": "user", "content": "Go."}],
        [Part("Go.", False)],
    )
    for number, (size, chars) in enumerate(zip(sizes, said, strict=False)):
        asks, output = (
            call(number, "bash", {"q": "a" * chars}),
            f"{number}" + "x" * size,
        )
        messages += [asks, result(number, output)]
        arguments = asks["tool_calls"][0]["function"]["arguments"]
        parts += [Part(arguments, False), Part(output, True)]
    told = prune_messages(messages, held, window, SMALL)
    pruned, removed = pruned_by_the_document(parts, held, window, SMALL)
    assert [
        n for n, is_pruned in enumerate(told.is_pruned) if is_pruned
    ] == pruned
    assert told.tokens_before - told.tokens_after == removed
    assert told.parts_pruned == len(pruned)


@pytest.mark.says(
    "three-layer-management",
    "Pruning Service",
    """
    public record PruneResult
    {
    public IReadOnlyList<MessagePart> PrunedParts { get; init; } = Array.Empty<MessagePart>();
    public int TokensBefore { get; init; }
    public int TokensAfter { get; init; }
    public int PartsPruned { get; init; }
    public bool WasPruned { get; init; }
    """,
    lives="ullage.documents.services.PruneResult",
)
@pytest.mark.says(
    "three-layer-management",
    "Pruning Service",
    "var tokensAfter = currentTokens - tokensRemoved;",
    lives="ullage.documents.services.prune_messages",
)
@pytest.mark.says(
    "three-layer-management",
    "Pruning Service",
    """
        return new PruneResult
        {
            PrunedParts = prunedParts,
            TokensBefore = currentTokens,
            TokensAfter = tokensAfter,
            PartsPruned = partsPruned,
            WasPruned = tokensRemoved > 0
        };
    """,
    lives="ullage.documents.services.prune_messages",
)
def test_the_record_of_a_pruning():
    messages = conversation(8)
    told = prune_messages(messages, 120_000, 128_000)
    assert len(told.pruned_parts) == len(told.is_pruned) == len(messages)
    assert (told.tokens_before, told.tokens_after) == (120_000, 91_500)
    assert (told.parts_pruned, sum(told.is_pruned), told.was_pruned) == (
        3,
        3,
        True,
    )
    nothing = prune_messages([], 0, 128_000)
    assert (
        nothing.pruned_parts,
        nothing.parts_pruned,
        nothing.was_pruned,
    ) == (
        (),
        0,
        False,
    )


@pytest.mark.says(
    "three-layer-management",
    "Pruning Service",
    """
    _logger.LogInformation(
            "Starting output pruning: {Current} tokens, target reduction: {Target}",
            currentTokens,
            TokenConstants.PruneMinimumTokens);
    """,
    lives="ullage.core.values.events.Event",
)
@pytest.mark.says(
    "three-layer-management",
    "Pruning Service",
    """
        _logger.LogInformation(
            "Pruning complete: {Before} → {After} tokens ({Removed} removed, {Parts} parts pruned)",
            currentTokens, tokensAfter, tokensRemoved, partsPruned);
    """,
    lives="ullage.core.values.edits.Batch",
)
@pytest.mark.says(
    "three-layer-management",
    "Integration with ChatService",
    """
            var pruneResult = _pruningService.PruneMessages(
                parts, currentTokens, contextLimit);

            if (pruneResult.WasPruned)
            {
                _logger.LogInformation(
                    "Pruned {Tokens} tokens from tool outputs",
                    pruneResult.TokensBefore - pruneResult.TokensAfter);
            }
    """,
    lives="ullage.core.values.events.Event",
)
def test_a_session_tells_of_each_pruning_and_uses_it():
    asked = nearly_full(11)
    told = asked.told("pruned")
    assert [event.where for event in told] == [
        f"message {n}, bash result" for n in (3, 5, 7)
    ]
    assert told[0].why == (
        "the window was over 85%, or the answer short of room; 40,000 characters set aside"
    )
    entries = asked.session.state.ledger.entries.values()
    (batch,) = (batch for entry in entries for batch in entry.batches)
    assert len(batch.edits) == 3
    won = sum(event.tokens_before - event.tokens_after for event in told)
    assert (
        abs(batch.tokens_before - batch.tokens_after - won) <= 0.2 * won
    )  # calibrated or not
    assert batch.tokens_after == asked.session.window.estimate
    assert [
        text.endswith("kept first 2000 chars]") for text in asked.shown()[:4]
    ] == [
        1,
        1,
        1,
        0,
    ]


# ── the estimator ────────────────────────────────────────────────────────────────────────


@pytest.mark.says(
    "three-layer-management",
    "Key Constants",
    "public const double CharsPerToken = 4.0;",
    lives="ullage.policy.stages.rough.CHARS_PER_TOKEN",
)
@pytest.mark.says(
    "three-layer-management",
    "Token Estimator",
    """
    // Simple estimation: 4 chars ≈ 1 token
    """,
    lives="ullage.policy.stages.rough.text_tokens",
)
@pytest.mark.says(
    "three-layer-management",
    "Token Estimator",
    """
        if (string.IsNullOrEmpty(text))
            return 0;

        return (int)Math.Ceiling(text.Length / TokenConstants.CharsPerToken);
    """,
    lives="ullage.policy.stages.rough.text_tokens",
)
@given(st.text(max_size=200))
def test_a_text_is_a_quarter_of_its_characters_rounded_up(text):
    assert rough.text_tokens(text) == tokens(text)
    assert [rough.text_tokens("x" * n) for n in (0, 1, 4, 5, 8)] == [
        0,
        1,
        1,
        2,
        2,
    ]


@pytest.mark.says(
    "three-layer-management",
    "Token Estimator",
    """
    return part switch
        {
            TextPart tp => EstimateTokens(tp.Content),
            ToolPart toolPart => EstimateTokens(toolPart.Input ?? "") +
                                 EstimateTokens(toolPart.Output ?? ""),
    """,
    lives="ullage.policy.stages.rough.part_tokens",
)
@pytest.mark.says(
    "three-layer-management",
    "Token Estimator",
    """
            ReasoningPart rp => EstimateTokens(rp.Content),
            _ => 0
    """,
    lives="ullage.policy.stages.rough.part_tokens",
)
@pytest.mark.parametrize(
    ("part", "expected"),
    [
        (Text("x" * 9), 3),
        (ToolCall("call_1", "a name that does not count", "x" * 9, 0), 3),
        (ToolResult("call_1", (Text("x" * 9),), is_error=False, at=0), 3),
        (Reasoning("x" * 9, 0), 3),
        (Media("image", "image/png", "x" * 9, 0), 0),
    ],
)
def test_the_tokens_of_each_kind_of_part(part, expected):
    assert rough.part_tokens(part, 0) == expected


@pytest.mark.says(
    "three-layer-management",
    "Token Estimator",
    """
        var tokens = EstimateTokens(message.Content ?? "");

        // Add overhead for role/structure
        tokens += 4;  // Role marker overhead
    """,
    lives="ullage.policy.stages.rough.message_tokens",
)
@pytest.mark.says(
    "three-layer-management",
    "Token Estimator",
    """
        // System prompt
        tokens += EstimateTokens(request.SystemPrompt ?? "");

        // Messages
        foreach (var message in request.Messages)
        {
            tokens += EstimateTokens(message.Content ?? "");
            tokens += 4;  // Message overhead

            if (message.ToolCalls != null)
            {
                foreach (var tc in message.ToolCalls)
                {
                    tokens += EstimateTokens(tc.Function.Name);
                    tokens += EstimateTokens(tc.Function.Arguments);
                }
            }
        }

        // Tools schema
        if (request.Tools != null)
        {
            foreach (var tool in request.Tools)
            {
                tokens += EstimateTokens(tool.Function.Name);
                tokens += EstimateTokens(tool.Function.Description ?? "");
                tokens += EstimateTokens(tool.Function.Parameters?.ToString() ?? "");
            }
        }
    """,
    lives="ullage.policy.stages.rough",
)
@pytest.mark.says(
    "three-layer-management",
    "Integration with ChatService",
    """
        var currentTokens = _tokenEstimator.EstimateRequestTokens(
            BuildRequest(chatMessages));
    """,
    lives="ullage.policy.stages.rough.view_tokens",
)
def test_the_tokens_of_a_request_statement_by_statement():
    function = {
        "name": "n" * 5,
        "description": "d" * 9,
        "parameters": {"p": "x" * 10},
    }
    request = {
        "model": "nobody-knows",
        "tools": [{"type": "function", "function": function}],
        "messages": [
            {"role": "system", "content": "s" * 13},
            {"role": "user", "content": "u" * 17},
            {**call(1, "n" * 6, {"q": "a"}), "content": "c" * 5},
            result(1, "r" * 21),
        ],
    }
    session = Asked().session
    session.fit(request)
    parameters = len('{"p":"xxxxxxxxxx"}')
    arguments = len('{"q": "a"}')
    system, tools = 4, 2 + 3 + -(-parameters // 4)
    said = (5 + 4) + (2 + 4 + 2 + -(-arguments // 4)) + (6 + 4)
    assert rough.view_tokens(session.window) == system + tools + said


@pytest.mark.says(
    "three-layer-management",
    "Token Estimator",
    "// For more accuracy, consider using tiktoken or similar",
    lives="ullage.core.tokens",
)
def test_the_hard_limit_does_not_rest_on_the_estimate():
    """Text of one character a token: the estimate sees a quarter of it, our count all."""
    asked = Asked(model="gpt-4.1", limits=Limits(window_tokens=20_000))
    for _ in range(3):
        asked.tool("٠١٢ ж ツ\n" * 1_000)
    assert asked.session.window.estimate <= asked.session.window.limit_tokens
    assert asked.told("pruned")
    assert not asked.told("condensed")


@pytest.mark.says(
    "three-layer-management",
    "Performance Considerations",
    "**Token Caching**: Cache token estimates for unchanged content",
    lives="ullage.core.history.measures.Tally",
)
def test_a_message_is_estimated_once_while_it_is_shown_the_same(monkeypatch):
    estimated = []
    original = rough.message_tokens
    asked = nearly_full(10)

    def noted(message, shown, *, drop_reasoning=False):
        estimated.append(message)
        return original(message, shown, drop_reasoning=drop_reasoning)

    monkeypatch.setattr(rough, "message_tokens", noted)
    asked.tool("short")
    assert len(estimated) == 2  # the call and its result
    estimated.clear()
    asked.tool(words(SIZE))
    assert asked.told("pruned")
    assert len(estimated) == 2 + len(
        asked.told("pruned")
    )  # layer 3 asks once more
    estimated.clear()
    asked.tool("short")
    assert len(estimated) == 2, (
        "of what is as it was nothing is estimated again"
    )


@pytest.mark.says(
    "three-layer-management",
    "Performance Considerations",
    "**Lazy Truncation**: Only truncate when output exceeds limits",
    lives="ullage.policy.stages.shapes.head_lines",
)
@given(
    st.lists(st.text("ab é\r", max_size=30), max_size=6),
    st.sampled_from(("read", "other")),
)
def test_nothing_is_copied_where_nothing_is_cut(lines, tool):
    output = "\n".join(lines)
    told = truncate_output(output, tool, SMALL)
    if not told.was_truncated and told.ref is None:
        assert told.output is output
    else:
        assert len(told.output) < len(output)


# ── the loop ─────────────────────────────────────────────────────────────────────────────


@pytest.mark.says(
    "three-layer-management",
    "Testing Strategy",
    """
    public void TruncateOutput_RespectsLineLimit()
    {
    var output = string.Join('\\n', Enumerable.Repeat("line", 3000));
    var result = _service.Truncate(output, "bash");

    Assert.True(result.WasTruncated);
    Assert.True(result.TruncatedLines <= TokenConstants.MaxOutputLines);
    """,
    lives="ullage.documents.services.truncate_output",
)
def test_the_documents_own_test():
    output = "\n".join(["line"] * 3000)
    result = truncate_output(output, "bash")
    assert result.was_truncated
    assert result.truncated_lines <= ThreeLayerSettings().max_output_lines
