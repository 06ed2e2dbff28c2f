"""Tenants: named, or known by their credential, which is never kept."""

import hashlib
import stat

import pytest

from ullage.errors import ConfigError
from ullage.proxy.config import Config
from ullage.proxy.tenants import Tenants, credential_of, secret_of


def test_a_credential_is_found_wherever_a_vendor_puts_it():
    assert credential_of("https://x/", {"x-api-key": "key"}) == "key"
    assert credential_of("https://x/", {"authorization": "Bearer key"}) == "key"
    assert credential_of("https://x/", {"x-goog-api-key": "key"}) == "key"
    assert credential_of("https://x/?alt=sse&key=key", {}) == "key"
    assert credential_of("https://x/", {}) == ""


def test_each_credential_is_a_tenant_and_tells_nothing():
    tenants = Tenants(Config(), b"s" * 32)
    one, other = (tenants.of("https://x/", {"x-api-key": key}) for key in ("one", "other"))
    assert one != other
    assert one == tenants.of("https://elsewhere/", {"authorization": "Bearer one"})
    assert "one" not in one
    assert one != Tenants(Config(), b"t" * 32).of("https://x/", {"x-api-key": "one"})


def test_tenants_have_names_where_they_are_given():
    digests = [hashlib.sha256(key).hexdigest() for key in (b"old", b"new")]
    tenants = Tenants(Config(tenants={"research": digests}), b"s" * 32)
    assert {tenants.of("", {"x-api-key": key}) for key in ("old", "new")} == {"research"}
    assert Tenants(Config(tenant="all"), b"s" * 32).of("", {"x-api-key": "any"}) == "all"


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
