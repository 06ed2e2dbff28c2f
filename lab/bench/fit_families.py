"""Fits the weights of ``ullage.tokens.estimate``. Research time only, in a venv of its own:

    pip install ctok splintr-rs toktok-rs msgspec numpy        (Python 3.12 or newer)
    PYTHONPATH=.:src python -m lab.bench.fit_families /usr/share /usr/include …

The reference for Claude is ctok, a reconstruction of its two vocabularies from measured
counts; for Gemini it is Gemma 3's vocabulary as splintr bundles it. The corpus is the files
found under the given folders and the generated kinds, in pieces of 160 to 8,000 characters.
Each piece weighs the same; errors are relative and large ones are weighed down, so that one
odd file does not bend the rest. Half of the pieces are held out for the figures printed; the
weights printed are fitted on all.
"""

from __future__ import annotations

import json
import random
import sys
import zlib
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import ctok
import numpy as np
import splintr

from lab.bench.token_corpus import generated, machine, split
from ullage.tokens.estimate import features
from ullage.tokens.exact import exact, repaired

RANGES = {"claude-v3": (1.0, 2.6), "claude-v4.8": (1.0, 4.5), "gemini": (0.6, 2.1)}
FILES_PER_KIND, CHARACTERS_PER_KIND = 300, 400_000
CHARACTERS_OF_TRANSLATIONS = 1_500_000


def pieces(roots: list[Path]) -> list[str]:
    """Pieces of every kind, of lengths spread evenly on a logarithmic scale."""
    rng = random.Random(3)
    found: list[str] = []
    for suffix, texts in machine(roots, FILES_PER_KIND).items():
        most = CHARACTERS_OF_TRANSLATIONS if suffix == "mo" else CHARACTERS_PER_KIND
        found += _cut(rng, texts, min(most, sum(map(len, texts)) // 2))
    for seed in range(4):
        for text in generated(60_000, seed).values():
            found += _cut(rng, [text], 60_000)
    return [repaired(text) for text in found]


def _cut(rng: random.Random, texts: list[str], characters: int) -> list[str]:
    cut: list[str] = []
    while texts and sum(map(len, cut)) < characters:
        text = rng.choice(texts)
        length = int(min(len(text), 10 ** rng.uniform(2.2, 3.9)))
        start = rng.randrange(max(1, len(text) - length))
        cut.append(text[start : start + length])
    return cut


def claude(text: str) -> tuple[int, int]:
    """Tokens of the two Claude vocabularies without the frame around a message."""
    return ctok.token_count(text, "3.0") - 7, ctok.token_count(text, "4.8") - 6


def solve(matrix: Any, truth: Any) -> Any:
    """Weights of least relative error, large errors weighed down, a little ridge."""
    scale = np.abs(matrix / truth[:, None]).mean(0) + 1e-9
    rows = matrix / truth[:, None] / scale
    ridge, zeros = np.eye(rows.shape[1]) * 0.3, np.zeros(rows.shape[1])
    weight = np.ones(len(truth))
    for _ in range(6):
        target = np.concatenate([weight, zeros])
        found = np.linalg.lstsq(np.vstack([rows * weight[:, None], ridge]), target, rcond=None)[0]
        weight = 1 / np.sqrt(np.maximum(np.abs(rows @ found - 1), 0.02))
        weight /= weight.mean()
    return found / scale


def report(name: str, matrix: Any, truth: Any) -> None:
    """Prints held-out errors and the weights fitted on everything."""
    order = np.random.default_rng(0).permutation(len(truth))
    train, held = order[::2], order[1::2]
    low, high = RANGES[name]
    guess = matrix[held] @ solve(matrix[train], truth[train])
    base = matrix[held][:, 0]
    error = np.clip(guess, low * base, high * base) / truth[held] - 1
    print(
        f"{name}: median {np.median(np.abs(error)):.3f}, mean {np.abs(error).mean():.3f}, "
        f"p95 {np.percentile(np.abs(error), 95):.3f}, bias {error.mean():+.3f}"
    )
    ratios = np.percentile(truth / matrix[:, 0], [0.1, 1, 50, 99, 99.9])
    print("    ratios to o200k at 0.1, 1, 50, 99, 99.9 %:", ratios.round(2))
    print("   ", tuple(round(float(weight), 4) for weight in solve(matrix, truth)))


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
            "gemini": [len(gemma.encode_ordinary(piece)) for piece in split(text)],
        }
    path = Path(__file__).with_name("token_figures.json")
    rows = ",\n".join(f"{json.dumps(kind)}: {json.dumps(row)}" for kind, row in figures.items())
    path.write_text(f"{{\n{rows}\n}}\n", encoding="utf-8")


def main() -> None:
    texts = pieces([Path(argument) for argument in sys.argv[1:]])
    print(f"{len(texts):,} pieces, {sum(map(len, texts)):,} characters")
    with ProcessPoolExecutor() as pool:
        both = np.array(list(pool.map(claude, texts, chunksize=50)), float)
    gemma = splintr.Tokenizer.from_pretrained("gemma3")
    base = exact("o200k_base")
    rows = [[base.count(text), *_padded(features(text))] for text in texts]
    matrix = np.array(rows, float)
    report("claude-v3", matrix, both[:, 0])
    report("claude-v4.8", matrix, both[:, 1])
    gemini = np.array([len(gemma.encode_ordinary(text)) for text in texts], float)
    report("gemini", matrix, gemini)
    write_figures(gemma)


def _padded(numbers: list[int]) -> list[int]:
    return numbers + [0] * (25 - len(numbers))


if __name__ == "__main__":
    main()
