"""Real coding agents behind a proxy of their own, against a provider that follows a script.

They are looked for on the PATH, and in the folder that ``ULLAGE_AGENTS`` names (``npm install
--prefix FOLDER @anthropic-ai/claude-code @openai/codex @google/gemini-cli opencode-ai``, then
``FOLDER/node_modules/.bin``).
"""

import json
import os
import re
import shutil
import subprocess
import sys

import pytest

from tests.servers import Call, Reply
from ullage.proxy.agents import FEATURES

pytestmark = pytest.mark.timeout(180)
PATH = os.pathsep.join(filter(None, (os.environ.get("ULLAGE_AGENTS"), os.environ["PATH"])))
CONTINUE = re.compile(r'get_continuation\(tool_call_id=\\*"(\w+)\\*", offset=(\d+)\)')
LISTING = "seq -f 'line %.0f' 1 2500"
LINE = re.compile(r"line \d+")
OURS = ("get_continuation", "tool_output_cache")

CLAUDE = {
    "wire": "anthropic",
    "command": "claude -p Count. --allowedTools Bash --output-format stream-json --verbose",
    "environment": {
        "ANTHROPIC_API_KEY": "none",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
    },
    "shell": lambda line: Call("Bash", {"command": line, "description": "Count"}),
}
CODEX = {
    "wire": "openai-responses",
    "command": "codex exec --json --skip-git-repo-check -m gpt-5.2 "
    "--dangerously-bypass-approvals-and-sandbox Count.",
    "environment": {"CODEX_API_KEY": "none"},
    "shell": lambda line: Call("exec_command", {"cmd": line, "max_output_tokens": 50_000}),
}
GEMINI = {
    "wire": "gemini",
    "command": "gemini -p Count. --yolo --skip-trust -m gemini-2.5-pro --output-format stream-json",
    "environment": {"GEMINI_API_KEY": "none"},
    # as it keeps them once a key was chosen in it: by its environment alone it takes no base URL
    "settings": {
        ".gemini/settings.json": '{"security": {"auth": {"selectedType": "gemini-api-key"}}}'
    },
    "shell": lambda line: Call("run_shell_command", {"command": line}),
}
OPENCODE = {
    "wire": "anthropic",
    "command": "opencode run -m anthropic/claude-sonnet-4-5 --format json Count.",
    "environment": {
        "ANTHROPIC_API_KEY": "none",
        "OPENCODE_DISABLE_AUTOUPDATE": "1",
        "OPENCODE_DISABLE_MODELS_FETCH": "1",
    },
    "shell": lambda line: Call("bash", {"command": line, "description": "Count"}),
}
AGENTS = {"claude": CLAUDE, "codex": CODEX, "gemini": GEMINI, "opencode": OPENCODE}
UPSTREAMS = {"anthropic": "anthropic", "openai-responses": "openai", "gemini": "gemini"}


def script(shell):
    """Count; read on where the output was cut; read on and count again at once; end."""

    def answer(captured):
        if OURS[0] not in captured.raw.decode():
            return Reply("A title.")  # asked beside the conversation, without tools
        step = len(asked)
        asked.append(captured.raw.decode())
        if step == 0:
            return Reply("I count.", [shell(LISTING)])
        ref, offset = CONTINUE.search(asked[1]).groups()
        more = Call("get_continuation", {"tool_call_id": ref, "offset": int(offset)})
        further = Call("get_continuation", {"tool_call_id": ref, "offset": 9_900})
        steps = (Reply("I read on.", [more]), Reply("Once more.", [further, shell("echo last")]))
        return (*steps, "All is counted.")[step - 1]

    asked = []
    return answer


@pytest.mark.parametrize("agent", AGENTS.values(), ids=AGENTS)
def test_an_agent_is_cut_reads_on_and_never_sees_it(agent, serve, tmp_path):
    words = agent["command"].split()
    if shutil.which(words[0], path=PATH) is None:
        pytest.skip(f"{words[0]} is not installed: npm install it, and set ULLAGE_AGENTS")
    server = serve(agent["wire"], script(agent["shell"]))
    upstream = f"--upstream={UPSTREAMS[agent['wire']]}={server.url}"
    run = [sys.executable, "-m", "ullage", "run", upstream]
    for name, text in agent.get("settings", {}).items():
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text(text, encoding="utf-8")
    done = subprocess.run(
        [*run, f"--store={tmp_path}/kept.db", "--", *words],
        capture_output=True,
        stdin=subprocess.DEVNULL,
        text=True,
        timeout=120,
        cwd=tmp_path,
        env={
            "PATH": PATH,
            "HOME": str(tmp_path),
            "PYTHONPATH": os.pathsep.join(sys.path),
            **agent["environment"],
        },
    )
    assert done.returncode == 0, done.stderr
    asked = [each.raw.decode() for each in server.requests if OURS[0].encode() in each.raw]
    assert len(asked) == 4
    seen = [len(set(LINE.findall(each))) for each in asked]
    assert 0 == seen[0] < seen[1] < seen[2] <= seen[3] < 2_500, "cut, and read on"
    assert "9900" in asked[3], "and once more"
    assert "last" in asked[3], "beside the agent's own call"
    assert "All is counted." in done.stdout
    assert not any(name in done.stdout for name in OURS)
    assert "opened again 2 times" in done.stderr


# Company: the first request of an agent, with and without the proxy

ALONE = {
    "claude": lambda url: ([], {"ANTHROPIC_BASE_URL": url}),
    "codex": lambda url: (["-c", f'openai_base_url="{url}/v1"'], {}),
    "gemini": lambda url: ([], {"GOOGLE_GEMINI_BASE_URL": url}),
    "opencode": lambda url: ([], {"OPENCODE_CONFIG_CONTENT": opencode_at(url)}),
}
"""How each agent is told of the provider itself: options and variables."""
OF_A_RUN = frozenset(
    (
        *("host", "content-length", "connection", "accept-encoding", "traceparent", "baggage"),
        *("user-agent", "x-ullage"),
    )
)
"""Headers that belong to a connection, or that an agent makes anew for each run."""


def opencode_at(url):
    options = {"baseURL": f"{url}/v1"}
    return json.dumps({"provider": {"anthropic": {"options": options}}})


def first_request(agent, serve, home, before):
    """The first request with tools that an agent sends."""
    home.mkdir()
    for name, text in agent.get("settings", {}).items():
        (home / name).parent.mkdir()
        (home / name).write_text(text, encoding="utf-8")
    server = serve(agent["wire"], lambda captured: Reply("All is counted."))
    words, variables = before(server.url)
    program, *rest = agent["command"].split()
    run = [*words, program, *rest] if words[:1] == [sys.executable] else [program, *words, *rest]
    done = subprocess.run(
        run,
        capture_output=True,
        stdin=subprocess.DEVNULL,
        timeout=120,
        cwd=home,
        env={
            "PATH": PATH,
            "HOME": str(home),
            "PYTHONPATH": os.pathsep.join(sys.path),
            **agent["environment"],
            **variables,
        },
    )
    with_tools = [each for each in server.requests if each.body.get("tools")]
    assert with_tools, done.stderr
    return with_tools[0]


def tool_names(request):
    listed = request.body["tools"]
    nested = [tool.get("functionDeclarations", [tool]) for tool in listed]
    return [str(tool.get("name") or tool.get("type")) for tools in nested for tool in tools]


@pytest.mark.parametrize("name", AGENTS)
def test_an_agent_s_first_request_has_our_tools_more_and_nothing_less(name, serve, tmp_path):
    agent = AGENTS[name]
    if shutil.which(agent["command"].split()[0], path=PATH) is None:
        pytest.skip(f"{name} is not installed: npm install it, and set ULLAGE_AGENTS")

    def behind(url):
        upstream = f"--upstream={UPSTREAMS[agent['wire']]}={url}"
        kept = f"--store={tmp_path}/kept.db"
        return [sys.executable, "-m", "ullage", "run", upstream, kept, "--"], {}

    alone = first_request(agent, serve, tmp_path / "alone", ALONE[name])
    company = first_request(agent, serve, tmp_path / "behind", behind)
    more = [each for each in tool_names(company) if each not in tool_names(alone)]
    assert [each for each in tool_names(company) if each not in more] == tool_names(alone)
    assert set(more) <= set(OURS)
    assert {*company.body} == {*alone.body}
    assert company.path == alone.path
    for header in {*alone.headers} - OF_A_RUN:
        assert header in company.headers, header
    assert alone.headers.get("anthropic-beta") == company.headers.get("anthropic-beta")
    assert alone.body.get("model") == company.body.get("model")


def test_claude_code_keeps_its_search_for_tools_by_the_variables_that_run_sets(serve, tmp_path):
    if shutil.which("claude", path=PATH) is None:
        pytest.skip("claude is not installed: npm install it, and set ULLAGE_AGENTS")
    (features,) = FEATURES.values()
    without = first_request(CLAUDE, serve, tmp_path / "without", ALONE["claude"])
    with_features = first_request(
        CLAUDE, serve, tmp_path / "with", lambda url: ([], {"ANTHROPIC_BASE_URL": url, **features})
    )
    assert len(tool_names(with_features)) < len(tool_names(without)) / 2
    assert len(with_features.raw) < len(without.raw)
