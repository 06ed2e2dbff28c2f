"""Tenants: named, or known by the credentials that the upstream sees, which are never kept."""

import base64
import hashlib
import json
import stat

import pytest
from multidict import CIMultiDict

from tests.proxy.upstream import ask, proxy, settle, upstream
from ullage.core.errors import ConfigError
from ullage.doors.proxy.config import AccessSettings, Config
from ullage.doors.proxy.tenants import (
    Tenants,
    credentials_of,
    is_placeholder,
    secret_of,
)

URL = "https://x/"


def tenant(headers=(), url=URL, **settings):
    return Tenants(Config(**settings), b"s" * 32).of(url, CIMultiDict(headers))


def token(alg="RS256", signature="s" * 43, **claims):
    """A JSON Web Token with these claims; nobody has signed it."""
    header = {"alg": alg, "typ": "JWT"}
    parts = [
        base64.urlsafe_b64encode(json.dumps(each).encode())
        for each in (header, claims)
    ]
    return ".".join(
        [*(part.decode().rstrip("=") for part in parts), signature]
    )


def aws(key, signature, day="20261126"):
    scope = f"{key}/{day}/us-east-1/bedrock/aws4_request"
    return f"AWS4-HMAC-SHA256 Credential={scope}, SignedHeaders=host, Signature={signature}"


ADA = {"iss": "https://id.example", "sub": "ada"}


def test_a_credential_is_found_wherever_a_vendor_puts_it():
    for headers in (
        {"x-api-key": "secret-1"},
        {"Authorization": "Bearer secret-1"},
        {"authorization": "bearer secret-1"},
        {"authorization": "BEARER  secret-1 "},
        {"x-goog-api-key": "secret-1"},
        {"api-key": "secret-1"},
    ):
        assert credentials_of(URL, CIMultiDict(headers)) == ["secret-1"]
    assert credentials_of(
        "https://x/?alt=sse&key=secret-1", CIMultiDict()
    ) == ["secret-1"]
    assert credentials_of(URL, CIMultiDict({"x-api-key": ""})) == []


def test_each_credential_is_a_tenant_and_tells_nothing():
    one, other = tenant({"x-api-key": "one"}), tenant({"x-api-key": "other"})
    assert one != other
    assert one == tenant({"authorization": "Bearer one"}, "https://elsewhere/")
    assert "one" not in one
    assert one != Tenants(Config(), b"t" * 32).of(
        URL, CIMultiDict({"x-api-key": "one"})
    )


SHARED = [
    *(
        "dummy",
        "EMPTY",
        "not-needed",
        "sk-placeholder",
        "xxxxxxxx",
        "sk-xxxx",
        "<your key>",
    ),
    *(
        "ollama",
        "your-api-key-here",
        "****",
        "${OPENAI_API_KEY}",
        "sk-ant-xxxx",
        "test",
        "null",
    ),
]
ODD = [
    *(
        token(**ADA, alg="none"),
        token(**ADA, signature=""),
        token(iss="x"),
        token(sub="ada"),
    ),
    *(token(**{**ADA, "sub": ["ada"]}), token(**ADA)[1:], "a.b." + "c" * 43),
]


@pytest.mark.parametrize("shared", SHARED)
@pytest.mark.parametrize("header", ["x-api-key", "api-key", "x-goog-api-key"])
def test_a_placeholder_hides_nobody(shared, header):
    assert is_placeholder(shared)
    ada, bob = (
        tenant({header: shared, "authorization": f"Bearer {who}"})
        for who in ("ada", "bob")
    )
    assert ada != bob
    assert ada == tenant({"authorization": "Bearer ada"})
    for who in ("ada", "bob"):
        alone, beside = (
            {"cookie": f"session={who}"},
            {"authorization": f"Bearer {shared}"},
        )
        assert tenant({**alone, **beside}) == tenant(alone)


@pytest.mark.parametrize(
    "key", ["sk-ant-api03-Zm9vYmFy", "k", "alice", "sk-proj-x1", "xoxo", "0a0"]
)
def test_what_somebody_may_have_is_no_placeholder(key):
    assert not is_placeholder(key)


def test_who_share_a_key_and_bring_tokens_of_their_own_are_two():
    for name in (
        "authorization",
        "cookie",
        "x-goog-iap-jwt-assertion",
        "cf-access-jwt-assertion",
    ):
        ada, bob = (
            tenant({"x-api-key": "the gateway's", name: who})
            for who in ("ada", "bob")
        )
        assert ada != bob


def test_further_headers_tell_users_apart_where_they_are_named():
    ada, bob = (
        {"x-api-key": "the gateway's", "X-User-Id": who}
        for who in ("ada", "bob")
    )
    assert tenant(ada) == tenant(bob)
    assert tenant(ada, tenant_headers=["X-User-Id"]) != tenant(
        bob, tenant_headers=["X-User-Id"]
    )
    with pytest.raises(ConfigError, match="tenant_headers"):
        Config(tenant_headers=["x user"])


def test_a_refreshed_token_stays_whose_it_was():
    first, second = (
        token(**ADA, exp=1, jti="a"),
        token(**ADA, exp=2, jti="b", signature="t" * 43),
    )
    assert tenant({"authorization": f"Bearer {first}"}) == tenant(
        {"authorization": second}
    )
    for other in (
        {**ADA, "sub": "bob"},
        {**ADA, "iss": "https://other.example"},
    ):
        assert tenant({"authorization": token(**other)}) != tenant(
            {"authorization": first}
        )


@pytest.mark.parametrize("odd", ODD)
def test_what_says_of_nobody_whose_it_is_or_is_not_signed_is_itself(odd):
    assert tenant({"authorization": odd}) != tenant(
        {"authorization": token(**ADA)}
    )
    assert tenant({"authorization": odd}) != tenant(
        {"authorization": odd + "x"}
    )


def test_who_brings_a_key_of_their_own_is_not_whom_a_token_beside_it_names():
    """The upstream may look at the key alone, and nobody check the token."""
    forged = {"authorization": token(**ADA), "x-api-key": "of somebody else"}
    assert tenant(forged) != tenant({"authorization": token(**ADA)})


def test_a_signature_of_aws_is_of_its_access_key():
    one, later = aws("AKIAONE", "a" * 64), aws("AKIAONE", "b" * 64, "20261127")
    assert tenant({"authorization": one}) == tenant({"authorization": later})
    assert tenant({"authorization": one}) != tenant(
        {"authorization": aws("AKIATWO", "a" * 64)}
    )


def test_tenants_have_names_where_they_are_given():
    digests = [hashlib.sha256(key).hexdigest() for key in (b"old", b"new")]
    named = {"tenants": {"research": digests}}
    for key in ("old", "new"):
        assert tenant({"x-api-key": key}, **named) == "research"
        assert (
            tenant(
                {"x-api-key": "dummy", "authorization": f"Bearer {key}"},
                **named,
            )
            == "research"
        )
    assert tenant({"x-api-key": "any"}, tenant="all") == "all"


BELIEVED = AccessSettings(tenant_header="X-Team", proxies=["127.0.0.0/8"])


def named(headers, *, is_trusted=True):
    config = Config(access=BELIEVED)
    return Tenants(config, b"s" * 32).of(
        URL, CIMultiDict(headers), is_trusted=is_trusted
    )


def test_a_reverse_proxy_names_the_teams_that_share_a_key():
    key = {"x-api-key": "the company's"}
    assert named({**key, "x-team": "research"}) == "research"
    assert named(key) == tenant(key)
    # of nobody else it is believed
    stranger = named({**key, "x-team": "research"}, is_trusted=False)
    assert stranger == tenant(key)


@pytest.mark.parametrize(
    "name", ["", " ", "a" * 65, "0123456789abcdef" * 2, "a\x1fb", "ä", "-x"]
)
def test_what_is_no_name_or_one_of_a_credential_names_nobody(name):
    key = {"x-api-key": "the company's"}
    assert named({**key, "x-team": name}) == tenant(key)


def test_requests_of_a_team_are_its_own_from_a_reverse_proxy_alone():
    seen, path = [], "/v1/chat/completions"
    body = json.dumps(
        {"model": "gpt-4.1", "messages": [{"role": "user", "content": "Hi."}]}
    ).encode()
    elsewhere = AccessSettings(tenant_header="x-team", proxies=["10.0.0.0/8"])
    given = {"authorization": "Bearer company", "X-Team": "research"}
    with upstream() as there:
        with proxy(there, seen.append, tenant=None, access=BELIEVED) as url:
            assert ask(url, "POST", path, body, given)[0] == 200
            # two names, as of a proxy that adds its own to its user's; and what is none
            for more in (
                {"x-team": "finance"},
                {"X-Team": "research, finance"},
                {"X-Team": ""},
                {"X-Team": "0123456789abcdef" * 2},
            ):
                for asked in (path, "/_ullage/v1/compress"):
                    assert (
                        ask(url, "POST", asked, body, given | more)[0] == 403
                    )
            settle(url)
        with proxy(there, tenant=None, access=elsewhere) as url:
            status, _, words = ask(url, "POST", path, body, given)
            assert status == 403
            assert b"access.proxies" in words
            assert b"research" not in words
            without = {"authorization": "Bearer company"}
            assert ask(url, "POST", path, body, without)[0] == 200
        (first, _) = there.requests
    assert [one.tenant for one in seen] == ["research"]
    assert first.header("x-team") == []


def test_a_header_that_is_no_text_is_a_credential_too():
    assert tenant({"x-api-key": "\udcff"}) != tenant({"x-api-key": "\udcfe"})


def test_the_secret_is_made_once_and_is_its_owners(tmp_path):
    store = tmp_path / "new" / "kept.db"
    found = secret_of(str(store))
    assert len(found) == 32
    assert secret_of(str(store)) == found
    (file,) = store.parent.iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    file.write_bytes(b"short")
    with pytest.raises(ConfigError, match="cut short"):
        secret_of(str(store))
