"""Real coding agents, without ullage and behind it, at their vendors' own addresses.

They are looked for on the PATH, and in the folder that ``ULLAGE_AGENTS`` names:

    npm install --prefix FOLDER @anthropic-ai/claude-code @openai/codex @google/gemini-cli \\
        opencode-ai @qwen-code/qwen-code @aaif/goose-binary-linux-x64
    python -m venv FOLDER/aider && FOLDER/aider/bin/pip install aider-chat

then ``FOLDER/node_modules/.bin``, with links to ``aider`` and ``goose`` in it.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct

from tests.servers import Call, provider
from tests.servers.vendors import vendors

PATH = os.pathsep.join(
    filter(None, (os.environ.get("ULLAGE_AGENTS"), os.environ["PATH"]))
)
OURS = ("get_continuation", "tool_output_cache")
"""The recall tools that a first request may have besides the agent's own."""

_VERSION = re.compile(r"\d+\.\d+\.\d+")


class CodingAgent(Struct, frozen=True):
    """How a coding agent is run without a terminal.

    Attributes:
        name: of the program.
        wire: that it speaks here.
        host: where it speaks it if nobody says otherwise.
        words: its arguments; ``PROMPT`` stands for what it is asked.
        resume: the same, to go on with the session before.
        environment: its variables: a key, and that it stays quiet.
        files: texts of its settings, by their path at home.
        shell: a call of the tool by which it runs a command; None: it has no tools.
    """

    name: str
    wire: str
    host: str
    words: tuple[str, ...]
    resume: tuple[str, ...]
    environment: dict[str, str] = {}
    files: dict[str, str] = {}
    shell: Callable[[str], Call] | None = None

    @property
    def program(self):
        """Where it is installed, or None."""
        return shutil.which(self.name, path=PATH)

    def asked(self, prompt, *, resumes=False):
        """Its command line for a prompt."""
        words = self.resume if resumes else self.words
        return [
            self.name,
            *(prompt if word == "PROMPT" else word for word in words),
        ]

    def version(self):
        """Its version, as it says."""
        done = subprocess.run(
            [self.program, "--version"], capture_output=True, text=True
        )
        version = _VERSION.search(done.stdout + done.stderr)
        return version[0] if version else "unknown"


def _words(text):
    return tuple(text.split())


_CODEX = "--json --skip-git-repo-check -m gpt-5.2 --dangerously-bypass-approvals-and-sandbox"
_OPENCODE = "-m anthropic/claude-sonnet-4-5 --format json PROMPT"
_QWEN = "-p PROMPT --yolo --auth-type openai -m qwen3-coder-plus"
_AIDER = (
    "--model openai/gpt-4.1 --message PROMPT --no-git --yes-always --no-check-update "
    "--no-show-model-warnings --analytics-disable --no-show-release-notes"
)

AGENTS = {
    agent.name: agent
    for agent in (
        CodingAgent(
            "claude",
            "anthropic",
            "api.anthropic.com",
            _words(
                "-p PROMPT --allowedTools Bash --output-format stream-json --verbose"
            ),
            _words(
                "-p PROMPT --continue --allowedTools Bash --output-format stream-json --verbose"
            ),
            {
                "ANTHROPIC_API_KEY": "none",
                "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
                "CLAUDE_CODE_MAX_RETRIES": "2",
                "DISABLE_AUTOUPDATER": "1",
            },
            shell=lambda line: Call(
                "Bash", {"command": line, "description": "Count"}
            ),
        ),
        CodingAgent(
            "codex",
            "openai-responses",
            "api.openai.com",
            _words(f"exec {_CODEX} PROMPT"),
            _words(f"exec {_CODEX} resume --last PROMPT"),
            {"CODEX_API_KEY": "none"},
            shell=lambda line: Call(
                "exec_command", {"cmd": line, "max_output_tokens": 50_000}
            ),
        ),
        CodingAgent(
            "gemini",
            "gemini",
            "generativelanguage.googleapis.com",
            _words(
                "-p PROMPT --yolo --skip-trust -m gemini-2.5-pro --output-format stream-json"
            ),
            _words(
                "-p PROMPT --resume latest --yolo --skip-trust -m gemini-2.5-pro"
            ),
            {"GEMINI_API_KEY": "none"},
            # as it keeps them once a key was chosen in it: see `ullage.doors.proxy.agents`
            {
                ".gemini/settings.json": (
                    '{"security": {"auth": {"selectedType": "gemini-api-key"}}}'
                )
            },
            shell=lambda line: Call("run_shell_command", {"command": line}),
        ),
        CodingAgent(
            "opencode",
            "anthropic",
            "api.anthropic.com",
            _words(f"run {_OPENCODE}"),
            _words(f"run --continue {_OPENCODE}"),
            {
                "ANTHROPIC_API_KEY": "none",
                "OPENCODE_DISABLE_AUTOUPDATE": "1",
                "OPENCODE_DISABLE_MODELS_FETCH": "1",
            },
            shell=lambda line: Call(
                "bash", {"command": line, "description": "Count"}
            ),
        ),
        CodingAgent(
            "qwen",
            "openai-chat",
            "dashscope.aliyuncs.com",
            _words(_QWEN),
            _words(f"{_QWEN} --continue"),
            {"OPENAI_API_KEY": "none"},
            shell=lambda line: Call(
                "run_shell_command",
                {
                    "command": line,
                    "description": "Count",
                    "is_background": False,
                },
            ),
        ),
        CodingAgent(
            "aider",
            "openai-chat",
            "api.openai.com",
            _words(_AIDER),
            _words(f"{_AIDER} --restore-chat-history"),
            {"OPENAI_API_KEY": "none", "LANG": "C.UTF-8"},
        ),
        CodingAgent(
            "goose",
            "openai-chat",
            "api.openai.com",
            _words("run --name one --text PROMPT"),
            _words("run --name one --resume --text PROMPT"),
            {
                "OPENAI_API_KEY": "none",
                "GOOSE_PROVIDER": "openai",
                "GOOSE_MODEL": "gpt-4.1",
                "GOOSE_DISABLE_KEYRING": "1",
            },
            shell=lambda line: Call("shell", {"command": line}),
        ),
    )
}
"""Every coding agent that `ullage run` names."""


class Ran(Struct, frozen=True):
    """What came of one run: exit status, output, errors, the summary of ``ullage run``."""

    status: int
    output: str
    errors: str
    summary: str


class World:
    """One agent's home and its vendor.

    Attributes:
        home: its folder.
        server: the `tests.servers.Provider` of its vendor.
        asked: every request to any host (`tests.servers.vendors.Asked`).
    """

    def __init__(self, agent, folder, server, there, *, is_behind):
        self.home, self.server, self.asked = (
            folder / "home",
            server,
            there.asked,
        )
        self._agent, self._there, self._store = (
            agent,
            there,
            folder / "kept.db",
        )
        self._is_behind = is_behind

    def run(self, command, **environment):
        """Run a command at home, behind ullage or not."""
        if self._is_behind:
            ullage = (
                sys.executable,
                "-m",
                "ullage",
                "run",
                f"--store={self._store}",
                "--",
            )
            command = [*ullage, *command]
        own = {
            "PATH": PATH,
            "HOME": str(self.home),
            "PYTHONPATH": os.pathsep.join(sys.path),
            **self._agent.environment,
            **self._there.environment,
            **environment,
        }
        done = subprocess.run(
            command,
            capture_output=True,
            stdin=subprocess.DEVNULL,
            text=True,
            timeout=150,
            cwd=self.home,
            env=own,
        )
        lines = done.stderr.splitlines()
        summary = [line for line in lines if line.startswith("ullage: ")]
        errors = [line for line in lines if not line.startswith("ullage: ")]
        return Ran(
            done.returncode, done.stdout, "\n".join(errors), "\n".join(summary)
        )

    def of_the_conversation(self):
        """The requests of the conversation: not those for a title and the like."""
        longest = max(
            (len(request.raw) for request in self.server.requests), default=0
        )
        return [
            request
            for request in self.server.requests
            if len(request.raw) > longest // 2
        ]


@contextmanager
def world(agent, replies, folder, *, is_behind):
    """An agent's home before its vendor, for as long as the block lasts.

    Args:
        agent: a `CodingAgent`.
        replies: what its vendor answers (`tests.servers.provider`).
        folder: an empty one for it.
        is_behind: whether commands are run behind ullage.
    """
    folder = Path(folder)
    home = folder / "home"
    home.mkdir(parents=True)
    for name, text in agent.files.items():
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(text, encoding="utf-8")
    with (
        provider(agent.wire, replies) as server,
        vendors({agent.host: server}, folder) as there,
    ):
        yield World(agent, folder, server, there, is_behind=is_behind)


def tools_of(request):
    """The names of a request's tools; of one that has no name, its type."""
    listed = request.body.get("tools", [])
    nested = [tool.get("functionDeclarations", [tool]) for tool in listed]
    tools = [tool.get("function", tool) for inner in nested for tool in inner]
    return [str(tool.get("name") or tool.get("type")) for tool in tools]


def messages_of(request):
    """The history of a request, whatever its wire calls it."""
    body = request.body
    return body.get("messages") or body.get("input") or body.get("contents")
