"""Whose API a request is of; a request never names a host."""

import pytest

from ullage.doors.proxy.config import UPSTREAMS
from ullage.doors.proxy.routes import UpstreamRoute, route_of

NAMED = {**UPSTREAMS, "local": "http://127.0.0.1:11434/base/"}


@pytest.mark.parametrize(
    ("target", "headers", "upstream"),
    [
        ("/v1/messages", {}, "anthropic"),
        ("/v1/messages/count_tokens?beta=true", {}, "anthropic"),
        ("/v1/models", {"anthropic-version": "2023-06-01"}, "anthropic"),
        ("/v1/models", {"authorization": "Bearer key"}, "openai"),
        ("/v1/chat/completions", {}, "openai"),
        ("/v1/responses/resp_1", {}, "openai"),
        ("/v1beta/models/gemini-3-pro:generateContent", {}, "gemini"),
        (
            "/v1/models/gemini-3-pro:streamGenerateContent?alt=sse",
            {},
            "gemini",
        ),
        ("/upload/v1beta/files", {"x-goog-api-key": "key"}, "gemini"),
        ("/", {}, "openai"),
        ("/api/chat", {}, "ollama"),
        ("/api/version", {}, "ollama"),
        ("/api/blobs/sha256:29fdb92e57cf", {}, "ollama"),
        ("/api/a-path-that-comes-later", {}, "ollama"),
        ("/api/v1/chat/completions", {}, "openai"),
        ("/api/chat/completions", {}, "openai"),
    ],
)
def test_path_and_headers_tell_the_vendor(target, headers, upstream):
    path = target.partition("?")[0]
    url = UPSTREAMS[upstream]
    assert route_of(target, headers, UPSTREAMS) == UpstreamRoute(
        upstream, url + target, url + path
    )


def test_a_path_may_begin_with_the_upstreams_name():
    base = "http://127.0.0.1:11434/base"
    found = route_of("/local/v1/messages?a=1", {}, NAMED)
    assert found == UpstreamRoute(
        "local", f"{base}/v1/messages?a=1", f"{base}/v1/messages"
    )
    assert (
        route_of("/anthropic/v1/models", {}, NAMED).url
        == "https://api.anthropic.com/v1/models"
    )


@pytest.mark.parametrize(
    "target", ["http://evil.example/v1/messages", "evil.example:443", "*"]
)
def test_a_request_that_names_a_host_goes_nowhere(target):
    assert route_of(target, {}, UPSTREAMS) is None


@pytest.mark.parametrize(
    "target", ["//evil.example/x", "/@evil.example/", "/\\evil.example"]
)
def test_no_path_leads_to_another_host(target):
    assert route_of(target, {}, UPSTREAMS) is None


@pytest.mark.parametrize(
    "target",
    [
        "/my-gateway/v1/messages",
        "/anthropic-base-url.gw.example/v1/messages?beta=true",
        "/my-gateway/chat/completions",
        "/my-gateway",
        "/Anthropic/v1/messages",
        "/v1x.example/messages",
    ],
)
def test_an_upstream_that_is_not_configured_gets_nothing_and_no_other_does(
    target,
):
    key = {"x-api-key": "a key of my gateway's"}
    assert route_of(target, key, UPSTREAMS) is None


@pytest.mark.parametrize(
    "path", ["/chat/completions", "/responses", "/models?a"]
)
def test_openai_s_paths_may_lack_the_version(path):
    assert route_of(path, {}, UPSTREAMS).upstream == "openai"


CODEX = {"authorization": "Bearer token", "chatgpt-account-id": "account"}


def test_codex_with_a_chatgpt_account_goes_where_it_goes_without_us():
    found = route_of("/openai/v1/responses?a=1", CODEX, UPSTREAMS)
    assert (found.upstream, found.url) == (
        "chatgpt",
        "https://chatgpt.com/backend-api/codex/responses?a=1",
    )
    plain = {"authorization": "Bearer key"}
    assert (
        route_of("/openai/v1/responses", plain, UPSTREAMS).upstream == "openai"
    )


def test_an_upstream_of_the_users_is_left_as_it_is():
    mine = {**UPSTREAMS, "openai": "https://gateway.example"}
    found = route_of("/openai/v1/responses", CODEX, mine)
    assert found.url == "https://gateway.example/v1/responses"


@pytest.mark.parametrize(
    "target",
    [
        *(
            "/local/../x",
            "/local/v1/../../x",
            "/local/%2e%2E/x",
            "/local/.%2e",
            "/local/..\\x",
        ),
        *("/./v1/models", "/local/a%2f..%2fb", "/local/..;/x", "/.."),
    ],
)
def test_no_path_leaves_that_of_its_upstream(target):
    assert route_of(target, {}, NAMED) is None


@pytest.mark.parametrize(
    "target",
    ["/v1/files/..a", "/v1/files/a..b", "/v1/models/gpt-4.1", "/v1/x?a=/../b"],
)
def test_dots_in_a_name_lead_nowhere_else(target):
    assert route_of(target, {}, UPSTREAMS) is not None
