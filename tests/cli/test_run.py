"""``ullage run``: a command behind a proxy of its own, as a user starts it."""

import json
import os
import subprocess
import sys

from ullage.core.installing import install_remedy

_ULLAGE = [sys.executable, "-m", "ullage", "run"]
_ASK = """
import anthropic, sys
client = anthropic.Anthropic(api_key="none")
message = {"role": "user", "content": "Hello."}
reply = client.messages.create(model="claude-opus-4-8", max_tokens=9, messages=[message])
print(reply.content[0].text)
sys.exit(3)
"""
_POST = """
import json, os, urllib.request
body = {"model": "claude-opus-4-8", "max_tokens": 9}
body["messages"] = [{"role": "user", "content": "Hello."}]
url = os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages"
head = {"content-type": "application/json", "x-api-key": "none"}
asked = urllib.request.Request(url, json.dumps(body).encode(), head)
print(json.load(urllib.request.urlopen(asked))["content"][0]["text"])
"""
_BASE = "import json, os; print(json.dumps(dict(os.environ)))"


def ran(*words, **environment):
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(sys.path),
        **environment,
    }
    return subprocess.run(
        [*_ULLAGE, *words],
        capture_output=True,
        text=True,
        env=environment,
        timeout=60,
    )


def test_a_client_of_the_command_finds_its_provider_through_the_proxy(serve):
    server = serve("anthropic", ["Good day."])
    done = ran(
        f"--upstream=anthropic={server.url}", "--", sys.executable, "-c", _ASK
    )
    assert (done.stdout, done.returncode) == ("Good day.\n", 3)
    assert len(server.requests) == 1


_TRIES = """
import os, urllib.error, urllib.request
from urllib.parse import urlsplit
url = os.environ["ULLAGE_PROXY"]
bare = f"http://{urlsplit(url).netloc}"
for base in (bare, f"{bare}/x", url):
    for path in ("/_ullage/state", "/_ullage/health", "/_ullage/metrics", "/anthropic/v1/models"):
        try:
            print(urllib.request.urlopen(base + path).status)
        except urllib.error.HTTPError as error:
            print(error.code)
"""


def test_nobody_else_of_the_machine_is_answered(serve):
    """Neither page nor upstream without the key that the command was given; all of it with that."""
    server = serve("anthropic", ["Good day."])
    done = ran(
        f"--upstream=anthropic={server.url}",
        "--",
        sys.executable,
        "-c",
        _TRIES,
    )
    codes = done.stdout.split()
    assert codes[:8] == ["404"] * 8
    assert codes[8:11] == ["200"] * 3
    assert codes[11] != "404" or server.requests
    assert not {"404"} & {*codes[8:11]}


def test_each_run_has_keys_of_its_own(tmp_path):
    """Codex's stands where other users can read it, and is another than that of the environment."""
    codex = tmp_path / "codex"
    codex.write_text(
        f"#!{sys.executable}\nimport os, sys\nprint(os.environ['ULLAGE_PROXY'], sys.argv[2])\n"
    )
    codex.chmod(0o700)
    keys = set()
    for _ in range(2):
        environment, argument = ran("--", str(codex)).stdout.split()
        keys.add(environment.rpartition("/")[2])
        keys.add(argument.split("/")[3])
    assert len(keys) == 4
    assert min(map(len, keys)) >= 32


def test_a_gateway_in_the_environment_is_where_requests_go(serve):
    server = serve("anthropic", ["Good day."])
    done = ran(
        "--", sys.executable, "-c", _POST, ANTHROPIC_BASE_URL=server.url
    )
    assert done.stdout == "Good day.\n"
    assert len(server.requests) == 1


def test_options_behind_the_command_are_the_commands():
    done = ran(
        sys.executable,
        "-c",
        "import sys; print(sys.argv[1:])",
        "--store",
        "-p",
    )
    assert done.stdout == "['--store', '-p']\n"


def test_a_command_within_a_command_has_no_proxy_of_its_own():
    inner = ran("--", *_ULLAGE, "--", sys.executable, "-c", _BASE)
    found = json.loads(inner.stdout)
    assert found["ANTHROPIC_BASE_URL"] == found["ULLAGE_PROXY"] + "/anthropic"
    assert "already behind the proxy on http://127.0.0.1:" in inner.stderr
    assert found["ULLAGE_PROXY"].rpartition("/")[2] not in inner.stderr


def test_a_program_that_is_not_there_is_told_without_a_traceback():
    done = ran("no-such-agent")
    assert done.returncode == 1
    assert "there is no program 'no-such-agent'" in done.stderr
    assert "Traceback" not in done.stderr


WITHOUT_THE_EXTRA = """
import sys
sys.modules["aiohttp"] = None
from ullage.core.installing import install_remedy
from ullage.tools.cli import main
main(["run", "--", "true"])
"""


def test_without_the_extra_it_says_what_to_install():
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_THE_EXTRA],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 1
    assert (
        done.stderr
        == f"Error: ullage proxy: aiohttp is missing. {install_remedy('proxy')}\n"
    )
