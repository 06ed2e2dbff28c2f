"""What real coding agents give their model of a result that was cut, from servers people use.

The agents are looked for on the PATH and in the folder that ``ULLAGE_AGENTS`` names; ``make
mcp-servers`` installs the servers.
"""

import json
import os
import shutil
import subprocess
import sys

import pytest

from tests.mcp.test_real_servers import PLACES
from tests.servers import Call, Reply

pytestmark = pytest.mark.timeout(180)
PATH = os.pathsep.join(
    filter(None, (os.environ.get("ULLAGE_AGENTS"), os.environ["PATH"]))
)
LINES = "".join(f"line {n}: all is well\n" for n in range(4_000))


def filesystem(folder):
    (folder / "log.txt").write_text(LINES)
    return (
        ["mcp-server-filesystem", str(folder)],
        "read_text_file",
        {"path": f"{folder}/log.txt"},
    )


def git(folder):
    def run(*words):
        author = ["-c", "user.name=a", "-c", "user.email=a@example.com"]
        subprocess.run(
            ["git", *author, *words],
            cwd=folder,
            check=True,
            capture_output=True,
        )

    run("init", "-q")
    (folder / "log.txt").write_text(LINES)
    run("add", ".")
    run("commit", "-qm", "first")
    words = ["mcp-server-git", "--repository", str(folder)]
    return words, "git_show", {"repo_path": str(folder), "revision": "HEAD"}


def everything(folder):
    return ["mcp-server-everything"], "get-env", {}


SERVERS = {"filesystem": filesystem, "git": git, "everything": everything}


_WORDS = ("command", "args")


def claude(folder, server, tool, given):
    """The command, what it is told beside it, its wire, and the call that its model makes."""
    (folder / "mcp.json").write_text(json.dumps({"mcpServers": {"s": server}}))
    words = [
        "claude",
        "-p",
        "go",
        "--mcp-config",
        "mcp.json",
        "--strict-mcp-config",
    ]
    quiet = {
        "ANTHROPIC_API_KEY": "none",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    }
    call = Call(f"mcp__s__{tool}", given)
    return [*words, "--allowedTools", "mcp__s"], quiet, "anthropic", call


def codex(folder, server, tool, given):
    (folder / ".codex").mkdir()
    lines = ["[mcp_servers.s]", "startup_timeout_sec = 60"]
    lines += (f"{name} = {json.dumps(server[name])}" for name in _WORDS)
    lines += [
        "[mcp_servers.s.env]",
        *(f"{k} = {json.dumps(v)}" for k, v in server["env"].items()),
    ]
    (folder / ".codex/config.toml").write_text("\n".join(lines))
    words = [
        "codex",
        "exec",
        "--json",
        "--skip-git-repo-check",
        "-m",
        "gpt-5.2",
    ]
    words += ["--dangerously-bypass-approvals-and-sandbox"]
    call = Call(tool.replace("-", "_"), given, namespace="mcp__s")
    return [*words, "go"], {"CODEX_API_KEY": "none"}, "openai-responses", call


ADDRESSES = {"claude": "ANTHROPIC_BASE_URL", "codex": "OPENAI_BASE_URL"}


@pytest.mark.parametrize("server", SERVERS)
@pytest.mark.parametrize("agent", [claude, codex], ids=["claude", "codex"])
def test_a_model_is_told_of_a_cut_whatever_its_client_shows(
    agent, server, serve, tmp_path
):
    program, tool, given = SERVERS[server](
        tmp_path
    )  # a server may read the client's folder alone
    places = os.pathsep.join((*map(str, PLACES), PATH))
    for needed in (agent.__name__, program[0]):
        if shutil.which(needed, path=places) is None:
            pytest.skip(f"{needed} is not installed")
    behind = [shutil.which(program[0], path=places), *program[1:]]
    environment = {
        "PATH": PATH,
        "PYTHONPATH": os.pathsep.join(sys.path),
        "MORE": LINES,
    }
    arguments = ["-m", "ullage", "mcp", "--", *behind]
    ours = {"command": sys.executable, "args": arguments, "env": environment}
    words, more, wire, call = agent(tmp_path, ours, tool, given)

    def answer(captured):
        raw = captured.raw.decode()
        if call.name not in raw:
            return Reply(
                "A title."
            )  # asked beside the conversation, without tools
        asked.append(raw)
        return Reply("done") if len(asked) > 1 else Reply("", [call])

    asked = []
    provider = serve(wire, answer)
    if agent is codex:
        config = tmp_path / ".codex/config.toml"
        config.write_text(
            f'openai_base_url = "{provider.url}/v1"\n{config.read_text()}'
        )
    address = {ADDRESSES[agent.__name__]: provider.url}
    done = subprocess.run(
        words,
        env={"PATH": PATH, "HOME": str(tmp_path), **address, **more},
        cwd=tmp_path,
        capture_output=True,
        stdin=subprocess.DEVNULL,
        timeout=120,
    )
    assert len(asked) == 2, done.stderr
    assert 0 < asked[1].count("all is well") < 3_000
    assert "get_continuation(tool_call_id=" in asked[1]
