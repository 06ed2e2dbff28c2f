"""The demo with a real model: the same questions, in a window and without one, and the same table.

What it says is recorded as it comes. The same command goes on where it stopped, and prints the
table again without asking anybody once all is there.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

import ullage
from demo import report
from demo.agenda import AGENDA, QUICK, Question
from demo.asked import Asked, asked_task
from demo.judged import Judged, judged
from demo.providers import AskError, provider_of, server_model
from demo.recording import Recording
from demo.tally import CountTokens, Memo
from demo.tools import Tools

__all__ = ["FOLDER", "MOST_USD", "ask"]

FOLDER = Path("recordings")
MOST_USD = 5.0
_EVERY_CALLS = 10
WITH, WITHOUT = "ullage", "no limit"
_QUESTIONS = {question.name: question for question in (*AGENDA, *QUICK)}


class _Asking:
    """What both runs are made of."""

    def __init__(
        self,
        model: str,
        url: str | None,
        recording: Path,
        *,
        agenda: Sequence[Question],
        window_tokens: int,
        most_usd: float,
        console: Console,
        count_tokens: CountTokens,
        tools: Tools | None,
    ) -> None:
        self.model, self.agenda, self.window_tokens = (
            model,
            agenda,
            window_tokens,
        )
        self.provider = provider_of(model, url)
        head = {
            "model": model,
            "format": self.provider.format,
            "questions": [question.name for question in agenda],
            "window_tokens": window_tokens,
        }
        self.recording = Recording(recording, head)
        self.most_usd, self.console = most_usd, console
        self.count, self.tools = Memo(count_tokens), tools or Tools()

    def run(self, name: str, session: ullage.Session | None) -> Asked:
        """One of the two runs, to its end."""
        asked = Asked(
            name,
            self.provider,
            self.recording,
            self.provider.first(self.model, asked_task(self.agenda)),
            session=session,
            tools=self.tools,
            count_tokens=self.count,
            most_usd=self.most_usd,
            watch=self._shows(name),
        )
        return asked.run()

    def runs(self) -> tuple[Asked, Asked]:
        """Without a limit, and in the window; the second is asked first, for it costs less."""
        limits = ullage.Limits(window_tokens=self.window_tokens)
        with tempfile.TemporaryDirectory(prefix="ullage-demo-") as folder:
            store = Path(folder) / "demo.db"
            session = ullage.Session(
                self.model,
                limits=limits,
                store=store,
                format=self.provider.format,
            )
            try:
                limited = self.run(WITH, session)
            finally:
                session.close()
        return self.run(WITHOUT, None), limited

    def _shows(self, name: str) -> Callable[[Asked], None]:
        def show(asked: Asked) -> None:
            if asked.calls % _EVERY_CALLS == 0 or asked.ended:
                cost = (
                    ""
                    if asked.cost_usd is None
                    else f"  ${asked.cost_usd:,.2f}"
                )
                self.console.print(
                    f"{name:8}  call {asked.calls:3}  largest prompt {asked.peak_tokens:9,}  "
                    f"recalls {asked.recalls:3}{cost}",
                    highlight=False,
                )

        return show


def ask(
    model: str | None,
    *,
    url: str | None = None,
    recording: Path | None = None,
    agenda: Sequence[Question],
    window_tokens: int,
    most_usd: float = MOST_USD,
    console: Console,
    count_tokens: CountTokens,
    tools: Tools | None = None,
) -> int:
    """Ask a real model, or read a recording of one, and print the table.

    Args:
        model: its name, or the URL of a server of one's own; None: as the recording tells.
        url: the base URL of such a server, where ``model`` is a name.
        recording: the file; None: by the name of the model, in ``FOLDER``.
        agenda: the questions.
        window_tokens: the size of the window.
        most_usd: each of the two runs ends when it has cost so much.
        console: where to print.
        count_tokens: tokens of each text, for the history.
        tools: the agent's tools.

    Returns:
        The exit status: 1 if the provider refused, 2 if the question cannot be put, 130 after
        Ctrl-C.
    """
    said = "The recording"
    try:
        if model and model.startswith(("http://", "https://")):
            url, model = model, server_model(model)
        if model is None:
            assert recording is not None
            head = Recording.head_of(recording)
            model, window_tokens = (
                str(head["model"]),
                int(head["window_tokens"]),
            )
            agenda = [_QUESTIONS[name] for name in head["questions"]]
            url = (
                "http://localhost" if head["format"] == "openai-chat" else None
            )
        recording = (
            recording
            or FOLDER / f"{re.sub(r'[^A-Za-z0-9._-]+', '-', model)}.jsonl"
        )
        said = str(recording)
        asking = _Asking(
            model,
            url,
            recording,
            agenda=agenda,
            window_tokens=window_tokens,
            most_usd=most_usd,
            console=console,
            count_tokens=count_tokens,
            tools=tools,
        )
        _open(asking, said)
        unlimited, limited = asking.runs()
    except AskError as error:
        console.print(
            f"{error}", highlight=False, markup=False, soft_wrap=True
        )
        if error.status == 1 and Path(said).exists():
            console.print(
                f"What it said so far is in {said}: the same command goes on there."
            )
        return error.status
    except KeyboardInterrupt:
        console.print(
            f"\nStopped. {said} holds what was said: the same command goes on there."
        )
        return 130
    _close(asking, unlimited, limited)
    return 0


def _open(asking: _Asking, path: str) -> None:
    begins = "goes on" if asking.recording.is_used else "is recorded"
    asking.console.print(
        f"{asking.model} answers {len(asking.agenda)} questions about the Python code of this "
        f"machine,\nonce inside {asking.window_tokens:,} tokens, once without a limit; each run "
        f"ends at ${asking.most_usd:,.2f}.\nWhat it says {begins} in {path}.\n",
        highlight=False,
    )


def _close(asking: _Asking, unlimited: Asked, limited: Asked) -> None:
    console = asking.console
    table = report.table(
        unlimited,
        limited,
        window_tokens=asking.window_tokens,
        costs_usd=(unlimited.cost_usd, limited.cost_usd),
        cache="as reported",
    )
    both = [
        (asked, judged(asking.agenda, asked)) for asked in (unlimited, limited)
    ]
    _add_evidence(table, both)
    console.print(table)
    if asking.recording.unlike:
        console.print(
            f"{asking.recording.unlike} recorded replies were given to other requests than this "
            "version sends:\ndelete the recording to ask anew."
        )


def _add_evidence(table: Table, both: Sequence[tuple[Asked, Judged]]) -> None:
    """What the last answers hold, and whether what had left was called back."""
    table.add_section()
    rows: dict[str, Callable[[Asked, Judged], str]] = {
        "ended": lambda asked, _: asked.ended,
        "evidence in the last answer": lambda _, found: (
            f"{found.quoted} of {found.asked}"
        ),
        "quotes no tool returned": lambda _, found: str(found.untrue),
        "evidence that had left the window": lambda _, found: str(found.left),
        "of this called back": lambda _, found: (
            f"{found.called_back} of {found.left}"
        ),
        "own calls made twice": lambda asked, _: str(asked.repeated),
    }
    for name, cell in rows.items():
        table.add_row(name, *(cell(asked, found) for asked, found in both))
