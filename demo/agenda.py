"""What the investigator is asked: questions about code every Python has.

Each asks where something is defined, what its module imports, who calls it, and, for most,
where a constant that governs it is set. The names exist in Python 3.11 to 3.14 and in the
packages ullage depends on; files and line numbers differ, and are found, not known.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

__all__ = ["AGENDA", "QUICK", "Question", "task"]


class Question(Struct, frozen=True):
    """One question of the agenda.

    Attributes:
        name: dotted name of what is looked for, such as ``urllib.request.urlopen``.
        scope: where its definition is searched, a path of the tools.
        usage: a regular expression of what a call of it looks like.
        constant: the name of a constant that governs it, or "".
        meaning: what the constant means, in words.
        usage_scope: where its callers are searched.
    """

    name: str
    scope: str
    usage: str
    constant: str = ""
    meaning: str = ""
    usage_scope: str = "stdlib"

    @property
    def symbol(self) -> str:
        """The last part of the dotted name."""
        return self.name.rpartition(".")[2]

    @property
    def words(self) -> str:
        """The question as a person would ask it."""
        constant = (
            f", and where is {self.meaning} set ({self.constant})"
            if self.constant
            else ""
        )
        return f"Where is {self.name} defined, what does its module import, who calls it{constant}?"


AGENDA: tuple[Question, ...] = (
    Question(
        "urllib.request.urlopen",
        "stdlib",
        r"\burlopen\(",
        "_GLOBAL_DEFAULT_TIMEOUT",
        "the default timeout",
    ),
    Question(
        "tarfile.TarFile",
        "stdlib",
        r"\bTarFile\b",
        "BLOCKSIZE",
        "the size of a block",
    ),
    Question(
        "rich.console.Console",
        "site/rich",
        r"\bConsole\(",
        "WINDOWS",
        "the flag for Windows",
        "site/rich",
    ),
    Question(
        "subprocess.Popen",
        "stdlib",
        r"\bPopen\(",
        "DEVNULL",
        "the null device",
    ),
    Question(
        "http.client.HTTPConnection",
        "stdlib",
        r"\bHTTPConnection\b",
        "HTTP_PORT",
        "the default port",
    ),
    Question(
        "re.compile",
        "stdlib",
        r"\bre\.compile\(",
        "_MAXCACHE",
        "the size of its cache",
    ),
    Question(
        "click.core.Context",
        "site/click",
        r"\bContext\b",
        usage_scope="site/click",
    ),
    Question(
        "argparse.ArgumentParser",
        "stdlib",
        r"\bArgumentParser\(",
        "SUPPRESS",
        "what hides a help text",
    ),
    Question(
        "logging.getLogger",
        "stdlib",
        r"\bgetLogger\(",
        "DEFAULT_TCP_LOGGING_PORT",
        "the port of its socket handler",
    ),
    Question(
        "pygments.lexer.RegexLexer",
        "site/pygments",
        r"import .*\bRegexLexer\b",
        usage_scope="site/pygments",
    ),
    Question(
        "zipfile.ZipFile",
        "stdlib",
        r"\bZipFile\(",
        "ZIP64_LIMIT",
        "the limit of the format",
    ),
    Question(
        "shutil.copyfileobj",
        "stdlib",
        r"\bcopyfileobj\(",
        "COPY_BUFSIZE",
        "the buffer size",
    ),
)

QUICK: tuple[Question, ...] = (
    AGENDA[0],
    Question(
        "json.decoder.JSONDecoder",
        "stdlib",
        r"\bJSONDecoder\b",
        "NUMBER_RE",
        "what a number looks like",
    ),
)


def task(agenda: Sequence[Question]) -> str:
    """The user's message: every question, numbered, and how to answer."""
    asked = "\n".join(
        f"{number}. {q.words}" for number, q in enumerate(agenda, 1)
    )
    return (
        "Answer these questions about the Python code of this machine, one after the other.\n"
        f"{asked}\n"
        "Quote your evidence: the exact line, with file and line number, as a tool returned it; "
        "never from memory. At the end, answer all of them together, with the evidence again."
    )
