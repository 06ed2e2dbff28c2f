"""What is wrong with a set-up, and what to do."""

import socket

import pytest

from tests.cli.terminal import ullage
from ullage.doors.proxy.config import Config
from ullage.doors.proxy.doctor import Finding, findings


def found(config, environment=None, **more):
    return {
        each.about: each
        for each in findings(config, environment or {}, **more)
    }


@pytest.fixture
def config(tmp_path):
    return Config(listen="127.0.0.1:0", store=str(tmp_path / "kept.db"))


def test_a_set_up_that_is_well(config):
    assert {each.verdict for each in findings(config, {})} <= {"ok", "note"}


def test_an_address_that_is_taken(config):
    with socket.create_server(("127.0.0.1", 0)) as other:
        taken = Config(
            listen=f"127.0.0.1:{other.getsockname()[1]}", store=config.store
        )
        finding = found(taken)["address"]
    assert finding.verdict == "wrong"
    assert "--listen" in finding.words


def test_a_store_that_is_none(tmp_path):
    (tmp_path / "kept.db").write_bytes(b"no database" * 100)
    finding = found(
        Config(listen="127.0.0.1:0", store=str(tmp_path / "kept.db"))
    )["store"]
    assert finding.verdict == "wrong"
    assert str(tmp_path) not in finding.words


def test_an_upstream_in_the_clear_or_not_there(config):
    with socket.create_server(("127.0.0.1", 0)) as there:
        port = there.getsockname()[1]
        upstreams = {
            "clear": "http://far.example",
            "near": f"http://127.0.0.1:{port}",
        }
        near = Config(
            listen="127.0.0.1:0", store=config.store, upstreams=upstreams
        )
        assert found(near)["upstream clear"].verdict == "wrong"
        assert found(near, online=True)["upstream near"].words.endswith(
            "takes connections"
        )
    assert found(near, online=True)["upstream near"].verdict == "wrong"


def test_agents_and_variables_are_named_without_what_may_be_secret(
    config, tmp_path
):
    agent = tmp_path / "claude"
    agent.write_text("#!/bin/sh\n")
    agent.chmod(0o700)
    gateway = "https://user:secret@gateway.example/v1"
    environment = {
        "PATH": str(tmp_path),
        "OPENAI_BASE_URL": gateway,
        "HTTPS_PROXY": "http://x",
    }
    told = found(config, environment)
    assert told["agents"].words == "ullage run -- claude"
    assert "gateway.example" in told["OPENAI_BASE_URL"].words
    assert "secret" not in told["OPENAI_BASE_URL"].words
    assert told["HTTPS_PROXY"].verdict == "note"


def test_whoever_is_behind_a_proxy_already_is_told(config):
    finding = found(config, {"ULLAGE_PROXY": "http://127.0.0.1:1/key"})[
        "environment"
    ]
    words = "this shell is behind the proxy on 127.0.0.1:1"  # and not its key
    assert finding == Finding("environment", "note", words)


def test_the_command_prints_a_line_each_and_says_whether_something_is_wrong(
    tmp_path,
):
    there = str(tmp_path / "kept.db")
    done = ullage("doctor", "--store", there, "--listen", "127.0.0.1:0")
    assert done.status == 0
    assert (
        "  ok  store: there is none yet; it can be made"
        in done.text.splitlines()
    )
    done = ullage(
        "doctor", "--store", there, "--upstream", "mine=http://far.example"
    )
    assert done.status == 1
    assert "upstream mine" in done.text


def test_a_key_of_two_tenants_is_told_with_both_names(tmp_path):
    file = tmp_path / "proxy.toml"
    digest = "0123456789abcdef" * 4
    file.write_text(f'[tenants]\nada = ["{digest}"]\nbob = ["{digest}"]\n')
    ran = ullage("doctor", "--config", file)
    assert ran.status == 1
    assert "'ada' and 'bob' list the digest of the same key" in ran.err
