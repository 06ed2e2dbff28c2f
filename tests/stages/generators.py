"""Texts nobody wants to read, by a short name: ``200 lines of log, line 9 says ERROR``."""

import json
import re


def _log(number):
    minutes, seconds = divmod(number, 60)
    return f"12:{minutes:02}:{seconds:02} INFO worker {number % 7} wrote block {number}"


def _python(number):
    return f"def step_{number}(x):  # the step after step {number - 1}"


def _row(number):
    return {
        "id": number,
        "name": f"harbour {number}",
        "depth_m": number * 3 % 40,
    }


GENERATORS = (
    (r"(\d+) lines of log", lambda n: "\n".join(map(_log, range(1, n + 1)))),
    (
        r"(\d+) lines of python",
        lambda n: "\n".join(map(_python, range(1, n + 1))),
    ),
    (
        r"(\d+) lines that end in CR LF",
        lambda n: "".join(f"{_log(i)}\r\n" for i in range(n)),
    ),
    (
        r"(\d+) words about the tide",
        lambda n: " ".join(["the tide came in again"] * (n // 5)),
    ),
    (
        r"one line of (\d+) characters",
        lambda n: "".join(f"{i:05}," for i in range(n // 6 + 1))[:n],
    ),
    (
        r"a JSON array of (\d+) objects",
        lambda n: json.dumps([_row(i) for i in range(n)]),
    ),
    (
        r"a JSON object of (\d+) keys",
        lambda n: json.dumps({f"harbour {i}": _row(i) for i in range(n)}),
    ),
    (
        r"a JSON object with a list of (\d+) numbers",
        lambda n: json.dumps(
            {"ok": True, "count": n, "values": list(range(n))}
        ),
    ),
    (r"(\d+) families and accents", lambda n: "👩‍👩‍👧 e\u0301 " * n),
)


def generate(kind):
    """The text that ``<<kind>>`` stands for."""
    what, *said = re.split(r", line (?=\d+ says )", kind)
    for pattern, make in GENERATORS:
        found = re.fullmatch(pattern, what)
        if found:
            lines = make(int(found[1])).split("\n")
            for line in said:
                number, _, text = line.partition(" says ")
                lines[int(number) - 1] = text
            return "\n".join(lines)
    raise ValueError(f"no generator for {kind!r}")
