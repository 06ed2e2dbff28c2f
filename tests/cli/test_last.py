"""``ullage last``: what ``ullage run`` kept is found after its process ended."""

import json
import re
import stat
from pathlib import Path

import pytest

from tests.cli.running import Machine
from tests.servers import Call, Reply
from ullage.tools.cli.last import has_display

CALLS = [Reply("", [Call("bash", {"c": name})]) for name in ("ls", "ls b")]


@pytest.fixture
def machine(tmp_path):
    return Machine(tmp_path)


def page_in(output):
    return Path(re.search(r"^Page: (.+)$", output, re.M)[1])


def test_a_run_ends_with_what_it_did_and_the_commands_that_show_it(
    machine, serve
):
    done = machine.run_agent(serve("anthropic", [*CALLS, "Done."]))
    assert done.returncode == 0, done.stderr
    assert (
        "ullage: 3 requests: 2 shortened, 1 unchanged, 0 passed through."
        in done.stderr
    )
    sent, raw, saved = map(
        float,
        re.search(
            r"Cost: \$([\d.]+), \$([\d.]+) without ullage: \$([\d.]+) saved",
            done.stderr,
        ).groups(),
    )
    assert raw - sent == pytest.approx(saved)
    assert saved > 0
    assert "Kept in ~/data/ullage/ullage.db." in done.stderr
    commands = re.findall(r"ullage (last|window last)$", done.stderr, re.M)
    assert commands == ["last", "window last"]

    tokens = re.search(r"Prompts: ([\d,]+) tokens", done.stderr)[1]
    last = machine.ullage("last")
    assert last.status == 0, last.err
    assert f": 3 requests, {tokens} tokens sent" in last.text
    page = page_in(last.text)
    assert "Count the files" not in page.read_text(), (
        "content is packed, never markup"
    )
    assert re.search(
        r"3 requests sent [\d,]+ tokens instead of about", page.read_text()
    )
    assert stat.S_IMODE(page.stat().st_mode) == 0o600
    assert stat.S_IMODE(page.parent.stat().st_mode) == 0o700
    assert machine.ullage("window", "last").status == 0


def test_last_and_ls_reckon_as_the_run_did(machine, serve):
    """To the token, also where the model opened what was left out in a request of its own."""

    def answer(captured):
        step = len(captured.body["messages"])
        if step == 5 and "line 2000 of" not in captured.raw.decode():
            ref = re.search(r'tool_call_id=\\*"(\w+)', captured.raw.decode())[
                1
            ]
            more = {"tool_call_id": ref, "offset": 60_000}
            return Reply("", [Call("get_continuation", more)])
        return "Done." if step > 8 else Reply("", [Call("bash", {"c": "ls"})])

    done = machine.run_agent(serve("anthropic", answer))
    assert "used it 1 time." in done.stderr
    numbers = r"Prompts: ([\d,]+) tokens, ([\d,]+) without"
    sent, raw = re.search(numbers, done.stderr).groups()
    last = machine.ullage("last").text
    assert f"{sent} tokens sent, {raw} without ullage" in last
    assert f"sent {sent} tokens instead of about {raw}:" in (
        page_in(last).read_text()
    )
    (row,) = json.loads(machine.ullage("ls", "--json").text)
    assert f"{row['raw_tokens']:,}" == raw


def test_a_store_of_ones_own_is_named_in_the_commands_and_found(
    machine, serve
):
    store = machine.home / "my store.db"
    done = machine.run_agent(
        serve("anthropic", [*CALLS, "Done."]), "--store", store
    )
    assert f"ullage last --store '{store}'" in done.stderr
    assert machine.ullage("last", "--store", store).status == 0
    nowhere = machine.ullage("last")
    assert nowhere.status == 1
    assert (
        "there is no store at the usual place, ~/data/ullage/ullage.db"
        in nowhere.err
    )
    assert "--store PATH" in nowhere.err


def test_the_store_of_a_configuration_file_is_the_usual_one(machine, serve):
    file = machine.home / "proxy.toml"
    file.write_text(f'store = "{machine.home}/of-file.db"\n')
    machine.environment["ULLAGE_PROXY_CONFIG"] = str(file)
    done = machine.run_agent(serve("anthropic", [*CALLS, "Done."]))
    assert done.stderr.rstrip().endswith("ullage window last")
    found = machine.ullage("last", "--json")
    assert json.loads(found.text)["requests"] == 3


def test_watch_and_inspect_find_the_same_store_by_themselves(machine, serve):
    for words in (("watch", "--once"), ("inspect",), ("ls",)):
        missing = machine.ullage(*words)
        assert missing.status == 1
        assert (
            "no store at the usual place, ~/data/ullage/ullage.db"
            in missing.err
        )
    machine.run_agent(serve("anthropic", [*CALLS, "Done."]))
    assert "1 conversation" in machine.ullage("watch", "--once").text
    inspected = machine.ullage("inspect", "--html", machine.home / "page.html")
    assert "3 requests" in inspected.text
    assert inspected.text.count("truncated") == 2
    assert (machine.home / "page.html").exists()


def test_a_dry_run_keeps_nothing_and_says_so(machine, serve):
    done = machine.run_agent(
        serve("anthropic", [*CALLS, "Done."]), "--dry-run"
    )
    assert "3 sent as they came (dry run)" in done.stderr
    assert "Dry run: nothing was kept." in done.stderr
    assert "ullage last" not in done.stderr


def test_without_a_display_no_browser_is_opened():
    assert not has_display({"SSH_CONNECTION": "1"})
    assert has_display({"WAYLAND_DISPLAY": "wayland-0"})
