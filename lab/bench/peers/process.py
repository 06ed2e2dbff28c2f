"""A peer's process: questions go in, answers come out, and nothing it does can stop the bench.

The words are those of `lab/bench/peers/adapters/speaks.py`. Whatever goes wrong is a `Trouble` that
says how: it ended, it answered out of turn, or it was too slow.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Event, Timer
from types import TracebackType
from typing import Any

import msgspec
from msgspec import Struct

BEGIN_SECONDS = 120.0
_QUIET = {
    "DO_NOT_TRACK": "1",
    "HEADROOM_TELEMETRY": "off",
    "HF_HUB_OFFLINE": "1",
    "LANGSMITH_TRACING": "false",
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "OTEL_SDK_DISABLED": "true",
    "TOKENIZERS_PARALLELISM": "false",
}
"""No peer needs the network to drop messages."""


class Trouble(Exception):
    """A peer that cannot be scored, and why, in one phrase without content."""


class Answer(Struct):
    """What a peer answers; see ``speaks.py``."""

    versions: dict[str, str] = {}
    view: list[int | dict[str, Any]] | None = None
    refs: list[str] = []
    ms: float = 0.0
    page: str | None = None
    refused: str | None = None


class PeerProcess:
    """One adapter, running. A context manager."""

    def __init__(
        self,
        python: Path,
        adapter: Path,
        *,
        seconds: float,
        hash_seed: str = "0",
    ) -> None:
        """Start an adapter.

        Args:
            python: the interpreter of the peer's environment.
            adapter: the script.
            seconds: how long an answer may take; the first may take longer, to import.
            hash_seed: its PYTHONHASHSEED.
        """
        self.seconds = seconds
        self._complaints = tempfile.TemporaryFile()  # noqa: SIM115 - closed by __exit__
        kept = {
            name: text
            for name, text in os.environ.items()
            if not name.startswith("PYTHON")
        }
        self._process = subprocess.Popen(
            [str(python.absolute()), str(adapter.absolute())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._complaints,
            env={**kept, **_QUIET, "PYTHONHASHSEED": hash_seed},
            cwd=tempfile.gettempdir(),
        )

    def __enter__(self) -> PeerProcess:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.end()

    def end(self) -> None:
        """End it, whatever it is doing. Again is no harm."""
        self._process.kill()
        self._process.wait()
        for pipe in (
            self._process.stdin,
            self._process.stdout,
            self._complaints,
        ):
            if pipe is not None:
                with suppress(BrokenPipeError):
                    pipe.close()

    def begin(
        self, policy: str, budget_tokens: int, tools: Sequence[Any]
    ) -> Answer:
        """Begin a run under a policy of this peer."""
        return self._ask(
            {
                "ask": "begin",
                "policy": policy,
                "budget_tokens": budget_tokens,
                "tools": tools,
            },
            max(self.seconds, BEGIN_SECONDS),
        )

    def view(self, new: Sequence[Any]) -> Answer:
        """The view of the next call, or the library's refusal."""
        answer = self._ask({"ask": "view", "new": new}, self.seconds)
        if answer.view is None and answer.refused is None:
            raise Trouble("answered without a view")
        return answer

    def page(self, ask: str, ref: str) -> str:
        """What the library's own tool returns; ``ask`` is ``open`` or ``whole``."""
        page = self._ask({"ask": ask, "ref": ref}, self.seconds).page
        if page is None:
            raise Trouble("answered without a page")
        return page

    def _ask(self, question: Mapping[str, Any], seconds: float) -> Answer:
        late = Event()
        watch = Timer(seconds, self._stop, (late,))
        watch.start()
        try:
            line = self._exchange(msgspec.json.encode(question) + b"\n")
        finally:
            watch.cancel()
        if late.is_set():
            raise Trouble(f"took more than {seconds:g} s for an answer")
        if not line:
            raise Trouble(f"ended without an answer{self._last_words()}")
        try:
            return msgspec.json.decode(line, type=Answer)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise Trouble("answered out of protocol") from error

    def _stop(self, late: Event) -> None:
        late.set()
        self._process.kill()

    def _exchange(self, line: bytes) -> bytes:
        if self._process.stdin is None or self._process.stdout is None:
            return b""
        try:
            self._process.stdin.write(line)
            self._process.stdin.flush()
        except BrokenPipeError:
            return b""
        return self._process.stdout.readline()

    def _last_words(self) -> str:
        """The kind of the error it ended with; what the error says may hold content."""
        self._process.wait(timeout=BEGIN_SECONDS)
        self._complaints.seek(0)
        lines = (
            self._complaints.read()
            .decode("utf-8", "replace")
            .strip()
            .splitlines()
        )
        kind = lines[-1].partition(":")[0] if lines else ""
        return (
            f" ({kind})"
            if kind.isidentifier() or ("." in kind and " " not in kind)
            else ""
        )
