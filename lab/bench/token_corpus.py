"""Texts of the kinds that agents read, made from the standard library and a seed.

Two sets. ``generated`` needs nothing but Python: its code, tracebacks and diffs come from the
standard library, the rest from a seeded generator; the tests and the table use it.
``machine`` adds the files that happen to be on this machine, for fitting the weights only.
"""

from __future__ import annotations

import base64
import difflib
import gettext
import json
import pydoc
import random
import re
import sysconfig
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path

from ullage.core.tokens.estimate import pairs

PIECES = 12
"""Into how many pieces the table cuts a text."""

_STDLIB = Path(sysconfig.get_paths()["stdlib"])
_MODULES = (
    "argparse",
    "ast",
    "asyncio/tasks",
    "calendar",
    "csv",
    "dataclasses",
    "difflib",
)
_WORDS = tuple(
    re.findall(
        r"\w+",
        "request worker cache index shard latency retry upstream payload session token buffer "
        "commit branch checkout merge deploy rollback migrate schema replica primary follower "
        "timeout refused accepted pending failed connected flushed rotated archived restored",
    )
)
_CHINESE = (
    "服务器在处理请求时发生了错误，请稍后再试。",
    "该函数返回一个列表，其中包含所有符合条件的记录。",
    "昨天的会议讨论了下一个版本的发布计划。",
    "数据库连接池已经耗尽，需要增加最大连接数。",
    "用户反馈说页面加载速度比以前慢了很多。",
    "我们需要先备份数据，然后再执行迁移脚本。",
)
_RUSSIAN = (
    "Сервер не смог обработать запрос, повторите попытку позже.",
    "Функция возвращает список всех записей, подходящих под условие.",
    "Вчера на совещании обсуждали план выпуска следующей версии.",
    "Пул соединений с базой данных исчерпан, увеличьте предел.",
    "Пользователи жалуются, что страница загружается медленнее обычного.",
    "Сначала нужно сделать резервную копию, затем запускать миграцию.",
)


@cache
def generated(size: int = 24_000, seed: int = 7) -> dict[str, str]:
    """One text of about ``size`` characters a kind, the same for the same seed and Python."""
    return {
        name: make(random.Random(f"{seed}{name}"), size)
        for name, make in _KINDS.items()
    }


def features(text: str) -> list[int]:
    """How often each byte and then each pair of classes occurs, in the order of the weights."""
    raw = text.encode("utf-8", "surrogatepass")
    bytes_of, pairs_of = Counter(raw), Counter(pairs(raw))
    return [bytes_of[byte] for byte in range(256)] + [
        pairs_of[pair] for pair in range(256)
    ]


def split(text: str) -> list[str]:
    """``PIECES`` pieces of equal length, as a tool would return them one after the other."""
    step = len(text) // PIECES
    return [text[at * step : (at + 1) * step] for at in range(PIECES)]


def machine(
    roots: Iterable[Path], per_kind: int, seed: int = 7
) -> dict[str, list[str]]:
    """Up to ``per_kind`` files of each suffix under ``roots``, as text by kind."""
    found: dict[str, list[Path]] = {}
    for path in _walk(roots):
        found.setdefault(path.suffix.lower(), []).append(path)
    chosen: dict[str, list[str]] = {}
    for suffix in sorted(found):
        rng = random.Random(f"{seed}{suffix}")
        picked = rng.sample(found[suffix], min(per_kind, len(found[suffix])))
        chosen[suffix.lstrip(".")] = [
            text for path in picked if (text := _read(path))
        ]
    return chosen


_SUFFIXES = frozenset(
    re.findall(
        r"\.\w+",
        ".py .js .md .rst .html .css .json .yaml .xml .sql .csv .log .txt .c .h .sh .toml .mo .rs "
        ".pl .pm .hpp .vim .tcl .cfg .svg .ts .go",
    )
)


def _walk(roots: Iterable[Path]) -> Iterator[Path]:
    """Every file under ``roots`` worth reading: known suffix, between 4 KB and 4 MB."""
    for root in roots:
        for path in sorted(root.rglob("*")):
            wanted = path.suffix.lower() in _SUFFIXES and path.is_file()
            if wanted and 4_000 <= path.stat().st_size <= 4_000_000:
                yield path


def _read(path: Path) -> str:
    """The text of a file; the translations of a message catalogue; "" if it is not text."""
    try:
        if path.suffix == ".mo":
            with path.open("rb") as file:
                catalogue = gettext.GNUTranslations(file)._catalog  # type: ignore[attr-defined]
            return "\n".join(value for value in catalogue.values() if value)
        return path.read_text(encoding="utf-8")
    except (UnicodeDecodeError, OSError, ValueError):
        return ""


def _python(rng: random.Random, size: int) -> str:
    """Source code of the standard library, starting anywhere."""
    text = (_STDLIB / f"{rng.choice(_MODULES)}.py").read_text(encoding="utf-8")
    start = rng.randrange(max(1, len(text) - size))
    return text[start : start + size]


def _prose(rng: random.Random, size: int) -> str:
    """The language reference as pydoc prints it."""
    topics = list(pydoc.Helper.topics)
    rng.shuffle(topics)
    from pydoc_data.topics import topics as texts

    return "\n".join(texts.get(name.lower(), "") for name in topics)[:size]


def _numbered(rng: random.Random, size: int) -> str:
    """A file as a reading tool shows it: right-aligned line numbers and an arrow."""
    lines = _python(rng, size).splitlines()
    return "\n".join(f"{i:6d}→{line}" for i, line in enumerate(lines, 1))[
        :size
    ]


def _grep(rng: random.Random, size: int) -> str:
    """Matches with path and line number."""
    lines = [line for line in _python(rng, size).splitlines() if line.strip()]
    return _fill(
        lambda: (
            f"src/{_path(rng)}.py:{rng.randrange(2000)}:{rng.choice(lines)}"
        ),
        size,
    )


def _traceback(rng: random.Random, size: int) -> str:
    """Frames as Python prints them."""
    lines = [
        line.strip() for line in _python(rng, size).splitlines() if "(" in line
    ]

    def frame() -> str:
        where = (
            f'  File "/usr/lib/python3/dist-packages/{_path(rng)}.py", line'
        )
        return f"{where} {rng.randrange(2000)}, in {rng.choice(_WORDS)}\n    {rng.choice(lines)}"

    return "Traceback (most recent call last):\n" + _fill(frame, size)


def _diff(rng: random.Random, size: int) -> str:
    """A unified diff of a module with a third of its lines disturbed."""
    old = _python(rng, size * 2).splitlines()
    new = [line.replace("self", "this") for line in old if rng.random() > 0.1]
    return "\n".join(
        difflib.unified_diff(old, new, "a/mod.py", "b/mod.py", lineterm="")
    )[:size]


def _json_value(rng: random.Random) -> dict[str, object]:
    """One record as an API returns it."""
    return {
        "id": str(uuid.UUID(int=rng.getrandbits(128))),
        "name": f"{rng.choice(_WORDS)}-{rng.choice(_WORDS)}",
        "created_at": f"2026-{rng.randint(1, 12):02d}-{rng.randint(1, 28):02d}T12:00:00Z",
        "score": round(rng.random() * 100, 4),
        "tags": rng.sample(_WORDS, 3),
        "active": rng.random() < 0.5,
        "owner": {
            "login": rng.choice(_WORDS),
            "followers": rng.randrange(100_000),
        },
    }


def _json_compact(rng: random.Random, size: int) -> str:
    """Records without spaces."""
    values = [_json_value(rng) for _ in range(size // 200)]
    return json.dumps(values, separators=(",", ":"))[:size]


def _json_pretty(rng: random.Random, size: int) -> str:
    """Records with two spaces a level."""
    return json.dumps(
        [_json_value(rng) for _ in range(size // 300)], indent=2
    )[:size]


def _logs(rng: random.Random, size: int) -> str:
    """Service logs with times, levels and fields."""

    def line() -> str:
        day, hour, second = (
            rng.randint(1, 28),
            rng.randint(0, 23),
            rng.random() * 60,
        )
        stamp = f"2026-11-{day:02d}T{hour:02d}:17:{second:06.3f}Z"
        fields = (
            f"id={rng.getrandbits(48):012x} ms={rng.randrange(9000)} "
            f"ip=10.0.{rng.randrange(256)}.7"
        )
        level = rng.choice(("INFO", "WARN", "ERROR", "DEBUG"))
        return f"{stamp} {level} [{rng.choice(_WORDS)}] {' '.join(rng.sample(_WORDS, 4))} {fields}"

    return _fill(line, size)


def _listing(rng: random.Random, size: int) -> str:
    """What ls -l prints."""

    def line() -> str:
        size_bytes, day = rng.randrange(10**6), rng.randint(1, 28)
        return f"-rw-r--r-- 1 root root {size_bytes:8d} Nov {day:2d} 06:55 {_path(rng)}.py"

    return _fill(line, size)


def _csv(rng: random.Random, size: int) -> str:
    """Numbers with a name."""

    def line() -> str:
        numbers = ",".join(f"{rng.random() * 1000:.3f}" for _ in range(6))
        return f"{rng.randrange(10**6)},{rng.choice(_WORDS)},{numbers}"

    return _fill(line, size)


def _html(rng: random.Random, size: int) -> str:
    """A page with nested elements, classes and links."""

    def row() -> str:
        target = f"/{_path(rng)}?id={rng.randrange(9999)}"
        link = f'<a class="btn btn-{rng.choice(_WORDS)}" href="{target}">'
        words = " ".join(rng.sample(_WORDS, 5))
        return f'<div class="row"><span>{words}</span>{link}open</a></div>'

    return _fill(row, size)


def _script(rng: random.Random, size: int) -> str:
    """JavaScript as a minifier leaves it."""

    def statement() -> str:
        a, b, c = rng.sample("abcdefghijklmnopqrstuvwxyz", 3)
        w, number = rng.choice(_WORDS), rng.randrange(99)
        return f"function {a}({b},{c}){{return {b}.{w}&&{c}!=={number}?{b}.{w}({c}):void 0}}"

    return _fill(statement, size).replace("\n", "")


def _hexdump(rng: random.Random, size: int) -> str:
    """What hexdump -C prints, without the last column."""
    rows = (
        f"{at * 16:08x}  {rng.randbytes(16).hex(' ')}"
        for at in range(size // 57 + 1)
    )
    return "\n".join(rows)[:size]


def _base64(rng: random.Random, size: int) -> str:
    """Random bytes in base64, one line."""
    return base64.b64encode(rng.randbytes(size)).decode()[:size]


def _uuids(rng: random.Random, size: int) -> str:
    """Identifiers, one a line."""
    return _fill(lambda: str(uuid.UUID(int=rng.getrandbits(128))), size)


def _tree(rng: random.Random, size: int) -> str:
    """What tree prints."""
    marks = ("├── ", "│   ├── ", "│   └── ", "└── ")
    return _fill(
        lambda: (
            f"{rng.choice(marks)}{rng.choice(_WORDS)}_{rng.choice(_WORDS)}.py"
        ),
        size,
    )


def _status(rng: random.Random, size: int) -> str:
    """Status lines with emoji."""
    marks = "✅❌🚀💡📦🐛🔥⚠️🎉🧪"
    return _fill(
        lambda: f"{rng.choice(marks)} {' '.join(rng.sample(_WORDS, 5))}", size
    )


def _constants(rng: random.Random, size: int) -> str:
    """Settings in capitals, as env prints them."""

    def line() -> str:
        name = "_".join(rng.sample(_WORDS, 3)).upper()
        return f"{name}={rng.choice((rng.choice(_WORDS), str(rng.randrange(9999))))}"

    return _fill(line, size)


def _chinese(rng: random.Random, size: int) -> str:
    """Chinese sentences."""
    return _fill(
        lambda: rng.choice(_CHINESE) + rng.choice(_CHINESE), size // 3
    )


def _russian(rng: random.Random, size: int) -> str:
    """Russian sentences."""
    return _fill(
        lambda: f"{rng.choice(_RUSSIAN)} {rng.choice(_RUSSIAN)}", size // 2
    )


def _path(rng: random.Random) -> str:
    """A relative path of two parts without suffix."""
    return f"{rng.choice(_WORDS)}/{rng.choice(_WORDS)}_{rng.choice(_WORDS)}"


def _fill(line: Callable[[], str], size: int) -> str:
    """Lines until there are ``size`` characters."""
    lines, total = [], 0
    while total < size:
        lines.append(line())
        total += len(lines[-1]) + 1
    return "\n".join(lines)[:size]


_KINDS: dict[str, Callable[[random.Random, int], str]] = {
    "prose": _prose,
    "python": _python,
    "numbered source": _numbered,
    "grep": _grep,
    "traceback": _traceback,
    "diff": _diff,
    "json, compact": _json_compact,
    "json, indented": _json_pretty,
    "logs": _logs,
    "listing": _listing,
    "csv": _csv,
    "html": _html,
    "minified script": _script,
    "hexdump": _hexdump,
    "base64": _base64,
    "uuids": _uuids,
    "tree": _tree,
    "emoji": _status,
    "constants": _constants,
    "chinese": _chinese,
    "russian": _russian,
}
