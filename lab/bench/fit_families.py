"""Fits the weights of ``ullage.core.tokens.estimate``. Research time only, in a venv of its own:

    pip install ctok regex splintr-rs toktok-rs msgspec numpy        (Python 3.12 or newer)
    PYTHONPATH=.:src python -m lab.bench.fit_families /usr/share /usr/include …

The reference for Claude is ctok, a reconstruction of its two vocabularies from measured
counts; for Gemini it is Gemma 3's vocabulary as splintr bundles it; for OpenAI toktok. The
corpus is the files found under the given folders, some of them as tools and calls show them
(numbered, indented by tabs, inside JSON), the generated kinds, and odd text (any script, runs
of one character), in pieces of 160 to 8,000 characters.

Each piece weighs the same; errors are relative and large ones are weighed down, so that one
odd file does not bend the rest. No weight is negative, so that no text of a kind never seen
takes from another's count. Half of the pieces are held out for the figures printed; the weights
written to ``src/ullage/core/tokens/weights.py`` are fitted on all.
"""

from __future__ import annotations

import base64
import json
import random
import sys
import textwrap
import zlib
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import ctok
import numpy as np
import splintr

from lab.bench.token_corpus import features, generated, machine, split
from ullage.core.tokens.estimate import STEPS
from ullage.core.tokens.exact import load, repaired

FAMILIES = ("claude-v3", "claude-v4.8", "gemini", "o200k_base", "cl100k_base")
FILES_PER_KIND, CHARACTERS_PER_KIND = 300, 400_000
CHARACTERS_OF_TRANSLATIONS = 1_500_000
CHARACTERS_OF_VARIANTS = 250_000
WEIGHTS = (
    Path(__file__).parents[2] / "src" / "ullage" / "tokens" / "weights.py"
)
RIDGE = 0.3
_SYMBOLS = (
    0x2190,
    0x2500,
    0x2580,
    0x2700,
    0x1F300,
    0x1F380,
    0x1F400,
    0x1F600,
    0x1F680,
    0x1F900,
)
"""Blocks of arrows, boxes, dingbats and emoji."""


def pieces(roots: list[Path]) -> list[str]:
    """Pieces of every kind, of lengths spread evenly on a logarithmic scale."""
    rng = random.Random(3)
    found: list[str] = []
    files = machine(roots, FILES_PER_KIND)
    for suffix, texts in files.items():
        most = (
            CHARACTERS_OF_TRANSLATIONS
            if suffix == "mo"
            else CHARACTERS_PER_KIND
        )
        found += _cut(rng, texts, min(most, sum(map(len, texts)) // 2))
    code = [
        text
        for suffix in ("py", "js", "c", "h", "sh", "md")
        for text in files.get(suffix, ())
    ]
    for variant in (_tabs, _numbered, _in_json):
        cut = _cut(rng, code, CHARACTERS_OF_VARIANTS)
        found += [variant(piece) for piece in cut]
    for seed in range(4):
        for text in generated(60_000, seed).values():
            found += _cut(rng, [text], 60_000)
    found += [_odd(rng) for _ in range(250)]
    return [repaired(text) for text in found]


def _cut(rng: random.Random, texts: list[str], characters: int) -> list[str]:
    cut: list[str] = []
    while texts and sum(map(len, cut)) < characters:
        text = rng.choice(texts)
        length = int(min(len(text), 10 ** rng.uniform(2.2, 3.9)))
        start = rng.randrange(max(1, len(text) - length))
        cut.append(text[start : start + length])
    return cut


def _tabs(text: str) -> str:
    """Indented by tabs, as Go is."""
    return text.replace("    ", "\t")


def _numbered(text: str) -> str:
    """As reading tools show a file, its lines indented by tabs."""
    lines = enumerate(_tabs(text).splitlines(), 7)
    return "\n".join(f"{at:6d}→{line}" for at, line in lines)


def _in_json(text: str) -> str:
    """As the arguments of a call."""
    return json.dumps({"path": "src/main.py", "content": text})


def _odd(rng: random.Random) -> str:
    """Characters of one script, a few words of them; or runs of one character."""
    if rng.random() < 0.7:
        anywhere = rng.choice(
            (*range(0x80, 0xD800, 0x80), *range(0xE000, 0x30000, 0x80))
        )
        block = rng.choice((anywhere, rng.choice(_SYMBOLS)))
        letters = "".join(
            chr(block + rng.randrange(0x80))
            for _ in range(rng.randint(50, 500))
        )
        return " ".join(textwrap.wrap(letters, 7)) or "-"
    runs = (
        rng.choice("-=#*. _~\t\n\0aA0─│█═") * rng.randint(2, 80)
        for _ in range(30)
    )
    return " ".join(runs)


def claude(text: str) -> tuple[int, int]:
    """Tokens of the two Claude vocabularies without the frame around a message."""
    return ctok.token_count(text, "3.0") - 7, ctok.token_count(text, "4.8") - 6


def counted(texts: list[str], gemma: Any) -> Any:
    """The reference counts: a row a piece, a column a family."""
    with ProcessPoolExecutor() as pool:
        both = list(pool.map(claude, texts, chunksize=50))
    o200k, cl100k = load("o200k_base"), load("cl100k_base")
    rest = [
        (len(gemma.encode_ordinary(text)), o200k(text), cl100k(text))
        for text in texts
    ]
    rows = [(*row, *other) for row, other in zip(both, rest, strict=True)]
    return np.maximum(np.array(rows, float), 1)


def solve(matrix: Any, truth: Any) -> Any:
    """Weights of least relative error, from 0 to what a byte can hold; a little ridge."""
    scale = np.abs(matrix / truth[:, None]).mean(0) + 1e-9
    rows = matrix / truth[:, None] / scale
    most = 255 / STEPS * scale
    weight = np.ones(len(truth))
    found = np.zeros(rows.shape[1])
    for _ in range(6):
        weighed = rows * weight[:, None]
        gram = weighed.T @ weighed + np.eye(rows.shape[1]) * RIDGE
        found = _bounded(gram, weighed.T @ weight, found, most)
        weight = 1 / np.sqrt(np.maximum(np.abs(rows @ found - 1), 0.02))
        weight /= weight.mean()
    return found / scale


def _bounded(gram: Any, target: Any, found: Any, most: Any) -> Any:
    """Coordinate descent within the bounds."""
    found, slope = found.copy(), gram @ found - target
    for _ in range(300):
        largest = 0.0
        for at in range(len(found)):
            new = min(max(0.0, found[at] - slope[at] / gram[at, at]), most[at])
            step = new - found[at]
            if step:
                slope += gram[:, at] * step
                found[at] = new
                largest = max(largest, abs(step))
        if largest < 1e-7:
            break
    return found


def rounded(weights: Any) -> bytes:
    """Weights as the estimate holds them: a byte each, in parts of a token."""
    return bytes(np.clip(np.rint(weights * STEPS), 0, 255).astype(np.uint8))


def report(name: str, matrix: Any, truth: Any) -> None:
    """Prints the errors on held-out pieces."""
    order = np.random.default_rng(0).permutation(len(truth))
    train, held = order[::2], order[1::2]
    weights = (
        np.frombuffer(rounded(solve(matrix[train], truth[train])), np.uint8)
        / STEPS
    )
    error = matrix[held] @ weights / truth[held] - 1
    print(
        f"{name}: median {np.median(np.abs(error)):.3f}, mean {np.abs(error).mean():.3f}, "
        f"p95 {np.percentile(np.abs(error), 95):.3f}, bias {error.mean():+.3f}"
    )


def write_weights(found: Iterable[tuple[str, bytes]]) -> None:
    """Writes the module that holds them."""
    rows = []
    for name, weights in found:
        lines = textwrap.wrap(base64.b85encode(weights).decode(), 88)
        quoted = "\n".join(f"        {json.dumps(line)}" for line in lines)
        rows.append(f"    {json.dumps(name)}: (\n{quoted}\n    ),\n")
    WEIGHTS.write_text(
        '"""Weights of `ullage.core.tokens.estimate`, written by ``lab.bench.fit_families``."""\n\n'
        '__all__ = ["WEIGHTS"]\n\n# fmt: off\nWEIGHTS = {\n'
        + "".join(rows)
        + "}\n# fmt: on\n"
        '"""Of each vocabulary 512 bytes in base 85: a weight a byte, then one a pair."""\n',
        encoding="utf-8",
    )


def write_figures(gemma: Any) -> None:
    """Keeps the reference counts of the generated pieces: the table and the tests use them.

    The checksum tells whether another Python generates the same text.
    """
    figures = {}
    for kind, text in generated().items():
        both = [claude(piece) for piece in split(text)]
        figures[kind] = {
            "crc": zlib.crc32(text.encode()),
            "claude-v3": [older for older, _ in both],
            "claude-v4.8": [newer for _, newer in both],
            "gemini": [
                len(gemma.encode_ordinary(piece)) for piece in split(text)
            ],
        }
    path = Path(__file__).with_name("token_figures.json")
    rows = ",\n".join(
        f"{json.dumps(kind)}: {json.dumps(row)}"
        for kind, row in figures.items()
    )
    path.write_text(f"{{\n{rows}\n}}\n", encoding="utf-8")


def main() -> None:
    texts = pieces([Path(argument) for argument in sys.argv[1:]])
    print(
        f"{len(texts):,} pieces, {sum(map(len, texts)):,} characters",
        flush=True,
    )
    gemma = splintr.Tokenizer.from_pretrained("gemma3")
    truth = counted(texts, gemma)
    matrix = np.array([features(text) for text in texts], float)
    for at, name in enumerate(FAMILIES):
        report(name, matrix, truth[:, at])
    fitted = (
        rounded(solve(matrix, truth[:, at])) for at in range(len(FAMILIES))
    )
    write_weights(zip(FAMILIES, fitted, strict=True))
    write_figures(gemma)


if __name__ == "__main__":
    main()
