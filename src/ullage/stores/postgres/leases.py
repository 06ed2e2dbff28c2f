"""Leases on the server (`ullage.stores.leases`), by the server's clock."""

from __future__ import annotations

from ullage.stores._packing import to_utf8
from ullage.stores.leases import Lease
from ullage.stores.postgres.asking import Asking, Query

_NOW = "extract(epoch FROM clock_timestamp())"
_CLAIM = f"""
WITH mine AS (
    INSERT INTO ullage.leases AS held (tenant, key, holder, until_s)
    VALUES (%(tenant)s, %(key)s, %(holder)s, {_NOW} + %(for)s::float8)
    ON CONFLICT (tenant, key) DO UPDATE
    SET holder = excluded.holder, until_s = excluded.until_s, reply = NULL
    WHERE held.until_s < {_NOW} OR (held.holder = excluded.holder AND held.reply IS NULL)
    RETURNING 1)
SELECT EXISTS (SELECT FROM mine), (
    SELECT reply FROM ullage.leases
    WHERE tenant = %(tenant)s AND key = %(key)s AND until_s >= {_NOW})
"""
_FULFIL = f"""
UPDATE ullage.leases
SET reply = %(reply)s, until_s = CASE WHEN %(reply)s::bytea IS NULL THEN 0
    ELSE {_NOW} + %(for)s::float8 END
WHERE tenant = %(tenant)s AND key = %(key)s AND holder = %(holder)s
"""
_OVER = f"""
DELETE FROM ullage.leases WHERE (tenant, key) IN (
    SELECT tenant, key FROM ullage.leases WHERE until_s < {_NOW} LIMIT 100
    FOR UPDATE SKIP LOCKED)
"""


def claim(
    tenant: str, key: bytes, holder: bytes, for_s: float
) -> Asking[Lease]:
    """`Leases.claim`."""
    values = {
        "tenant": to_utf8(tenant),
        "key": key,
        "holder": holder,
        "for": for_s,
    }
    (rows,) = yield (Query(_CLAIM, values),)
    is_mine, reply = rows[0]
    return Lease(is_mine, None if is_mine else reply)


def fulfil(
    tenant: str, key: bytes, holder: bytes, reply: bytes | None, for_s: float
) -> Asking[None]:
    """`Leases.fulfil`; those that are over go."""
    values = {
        "tenant": to_utf8(tenant),
        "key": key,
        "holder": holder,
        "for": for_s,
        "reply": reply,
    }
    yield (Query(_FULFIL, values), Query(_OVER))
