"""Settings: from a file, the environment and options, and what cannot be meant."""

import pytest

from ullage.core.errors import ConfigError
from ullage.doors.proxy.config import (
    UPSTREAMS,
    Config,
    ProxyLimits,
    config_of,
    host_and_port,
    is_loopback,
)

FILE = """
listen = "127.0.0.1:9000"
policy = "output_cache"
[upstreams]
local = "http://127.0.0.1:11434"
[tenants]
research = ["%s"]
[limits]
idle_s = 5
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "proxy.toml"
    path.write_text(FILE % ("a" * 64))
    return path


def test_the_vendors_are_known_and_everything_has_a_default():
    assert config_of() == Config()
    assert Config().upstreams == UPSTREAMS


def test_options_go_before_the_environment_and_that_before_the_file(file):
    environment = {
        "ULLAGE_PROXY_LISTEN": "127.0.0.1:9001",
        "ULLAGE_PROXY_WORKERS": "3",
    }
    config = config_of(file, environment, listen="127.0.0.1:9002", policy=None)
    assert (config.listen, config.policy, config.workers) == (
        "127.0.0.1:9002",
        "output_cache",
        3,
    )
    assert config_of(file, environment).listen == "127.0.0.1:9001"
    assert config.limits == ProxyLimits(idle_s=5)
    assert config.tenants == {"research": ["a" * 64]}


def test_upstreams_are_added_up(file):
    config = config_of(
        file, upstreams={"openai": "https://gateway.example/v1"}
    )
    added = {
        "local": "http://127.0.0.1:11434",
        "openai": "https://gateway.example/v1",
    }
    assert config.upstreams == {**UPSTREAMS, **added}


def test_the_store_of_the_other_commands_is_the_proxys():
    assert config_of(None, {"ULLAGE_STORE": "kept.db"}).store == "kept.db"
    assert (
        config_of(None, {"ULLAGE_STORE": "kept.db"}, store="mine.db").store
        == "mine.db"
    )


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"listen": "8787"}, "no address and port"),
        ({"listen": "127.0.0.1:99999"}, "no address and port"),
        ({"policy": "best"}, "there is no 'best'"),
        ({"workers": 0}, "not more than 0"),
        ({"limits": {"idle_s": -1}}, "not more than 0"),
        ({"limits": {"idle": 1}}, "unknown field"),
        ({"window_tokens": 12}, "too small"),
        ({"upstreams": {"Mine": "https://x.example"}}, "no lower-case word"),
        ({"upstreams": {"mine": "x.example"}}, "not a URL"),
        ({"upstreams": {"mine": "ftp://x.example"}}, "not a URL"),
        (
            {"upstreams": {"mine": "https://key:secret@x.example"}},
            "more than host and path",
        ),
        (
            {"upstreams": {"mine": "https://x.example?key=secret"}},
            "more than host and path",
        ),
        ({"tenants": {"me": ["sk-secret"]}}, "no SHA-256"),
        (
            {"tenants": {"one": ["a" * 64], "two": ["b" * 64, "a" * 64]}},
            "'one' and 'two' list the digest of the same key",
        ),
        ({"access": {"tenant_header": "x team"}}, "not a header's name"),
        ({"access": {"tenant_header": "x-team"}}, "tenant_header"),
        ({"opt_out_header": "x ullage"}, "not a header's name"),
        ({"colour": "red"}, "unknown field"),
    ],
)
def test_what_cannot_be_meant_is_refused_and_no_secret_is_told(settings, told):
    with pytest.raises(ConfigError, match=told) as caught:
        config_of(None, {}, **settings)
    assert "secret" not in str(caught.value)


def test_a_file_that_cannot_be_read_is_told(tmp_path):
    with pytest.raises(ConfigError, match="cannot be read"):
        config_of(tmp_path / "none.toml")
    (tmp_path / "bad.toml").write_text("listen = ")
    with pytest.raises(ConfigError, match="not TOML"):
        config_of(tmp_path / "bad.toml")


def test_addresses():
    assert host_and_port("[::1]:80") == ("::1", 80)
    assert host_and_port("localhost:0") == ("localhost", 0)
    assert [
        host
        for host in ("localhost", "127.0.0.9", "::1", "0.0.0.0", "x.y")
        if is_loopback(host)
    ]
    assert not any(
        map(is_loopback, ("0.0.0.0", "::", "10.0.0.1", "x.example"))
    )


def test_tools_by_which_the_user_answers_come_from_everywhere(tmp_path):
    path = tmp_path / "proxy.toml"
    path.write_text('user_tools = ["ask_me"]\n')
    environment = {"ULLAGE_PROXY_USER_TOOLS": "ask_us, ask_them,"}
    assert config_of(path).user_tools == ["ask_me"]
    assert config_of(path, environment).user_tools == ["ask_us", "ask_them"]
    assert config_of(path, environment, user_tools=["ask_you"]).user_tools == [
        "ask_you"
    ]
    with pytest.raises(ConfigError, match="user_tools"):
        config_of(user_tools=["--"])


def test_a_store_in_memory_is_refused_by_its_own_name(tmp_path):
    path = tmp_path / "proxy.toml"
    path.write_text('store = "memory"\n')
    with pytest.raises(ConfigError, match="store: a proxy cannot keep in mem"):
        config_of(path)
