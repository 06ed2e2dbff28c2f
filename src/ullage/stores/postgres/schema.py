"""The tables on the server, as the steps that lead from each version to the next.

    ullage.outputs    (tenant, ref) → digest, sizes, last use
    ullage.chunks     (tenant, ref, n) → counts, body     about a MiB each, zstd if that is smaller
    ullage.records    (tenant, key, kind, n, name) → data, last use
    ullage.names      which keys of the ledger need which refs
    ullage.cleanings  when whose outputs were last cleaned up
    ullage.agreed     what the first to ask for it made up for all
    ullage.budgets    name → what a fleet has spent
    ullage.calls      each call of it, as it was booked
    ullage.spending   what teams spend of their budgets, by period and process
    ullage.receipts   what requests cost and would have cost, by day, tenant, model and client
    ullage.leases     who asks a model for a summary just now, and what it said
    ullage.messages   conversations, as chat services keep them; ullage.compactions their summaries
    ullage.versions   which steps were taken, and the oldest version that may still write then

Tenants, refs and names are bytes, since they come from outside and may hold anything. When
something was last used is in seconds since 1970, by the server's clock.

During a rolling upgrade several versions work on one schema. A step that only adds (a table, a
column with a default, an index) leaves ``oldest`` as it is, and workers of before go on. One that
changes what older workers rely on raises it, and those are told to be upgraded when they open.
Who may not create tables need not: where all steps were taken, none of this is written.
"""

from __future__ import annotations

from typing import LiteralString, NamedTuple

from ullage.core.errors import StoreError
from ullage.stores.postgres.asking import BEGIN, COMMIT, Asking, Query

NAME = "postgresql"
_LOCK = 0x756C6C67  # "ullg"


class Step(NamedTuple):
    """What leads from one version to the next.

    Attributes:
        oldest: the oldest version whose workers may go on after it.
        statements: what is done, in one transaction with all the others.
    """

    oldest: int
    statements: tuple[LiteralString, ...]


MIGRATIONS: tuple[Step, ...] = (
    Step(
        oldest=1,
        statements=(
            """
            CREATE TABLE ullage.outputs (
                tenant bytea NOT NULL,
                ref bytea NOT NULL,
                digest bytea NOT NULL,  -- blake3, 256 bits, of kind, text and tenant
                kind text NOT NULL,
                size_bytes bigint NOT NULL,  -- of the UTF-8 (surrogatepass), before compression
                stored_bytes bigint NOT NULL,  -- of all bodies
                chunks integer NOT NULL,
                used_s bigint NOT NULL,
                PRIMARY KEY (tenant, ref))
            """,
            "CREATE INDEX outputs_by_ref ON ullage.outputs (ref)",
            "CREATE INDEX outputs_by_use ON ullage.outputs (used_s, tenant, ref)",
            "CREATE INDEX outputs_by_use_of ON ullage.outputs (tenant, used_s, ref)",
            """
            CREATE TABLE ullage.chunks (
                tenant bytea NOT NULL,
                ref bytea NOT NULL,
                n integer NOT NULL,
                coding text NOT NULL,  -- 'raw' or 'zstd'; ' in object': the body is its name
                size_bytes bigint NOT NULL,
                chars bigint NOT NULL,
                newlines bigint NOT NULL,
                seal bytea NOT NULL,
                body bytea,
                PRIMARY KEY (tenant, ref, n))
            """,
            "ALTER TABLE ullage.chunks ALTER COLUMN body SET STORAGE EXTERNAL",
            """
            CREATE TABLE ullage.records (
                tenant bytea NOT NULL,
                key bytea NOT NULL,
                kind text NOT NULL,
                n bigint NOT NULL,
                name bytea NOT NULL,
                data bytea NOT NULL,
                used_s bigint NOT NULL,
                PRIMARY KEY (tenant, key, kind, n, name))
            """,
            """
            CREATE TABLE ullage.names (
                tenant bytea NOT NULL,
                ref bytea NOT NULL,
                key bytea NOT NULL,
                PRIMARY KEY (tenant, ref, key))
            """,
            "CREATE INDEX names_by_key ON ullage.names (tenant, key)",
            "CREATE TABLE ullage.cleanings (scope bytea PRIMARY KEY, began_s bigint NOT NULL)",
        ),
    ),
    Step(
        oldest=1,
        statements=(
            "CREATE TABLE ullage.agreed (name text PRIMARY KEY, value bytea NOT NULL)",
            """
            CREATE TABLE ullage.budgets (
                name text PRIMARY KEY,
                fresh_tokens bigint NOT NULL,
                cache_read_tokens bigint NOT NULL,
                cache_write_tokens bigint NOT NULL,
                output_tokens bigint NOT NULL,
                estimated_tokens bigint NOT NULL,
                calls bigint NOT NULL,
                cost_usd double precision NOT NULL,
                unpriced bigint NOT NULL)  -- calls without a known price
            """,
            """
            CREATE TABLE ullage.calls (
                id bytea PRIMARY KEY,
                budget text NOT NULL,
                booked_at timestamptz NOT NULL DEFAULT now(),
                agent text NOT NULL,
                model text NOT NULL,
                fresh_tokens bigint NOT NULL,
                cache_read_tokens bigint NOT NULL,
                cache_write_tokens bigint NOT NULL,
                output_tokens bigint NOT NULL,
                estimated_tokens bigint NOT NULL,
                calls bigint NOT NULL,  -- 0: a fuller report of an earlier one
                cost_usd double precision NOT NULL,
                unpriced bigint NOT NULL)
            """,
            "CREATE INDEX calls_of ON ullage.calls (budget, booked_at)",
        ),
    ),
    Step(
        oldest=1,
        statements=(
            """
            CREATE TABLE ullage.leases (
                tenant bytea NOT NULL,
                key bytea NOT NULL,
                holder bytea NOT NULL,
                until_s double precision NOT NULL,
                reply bytea,  -- what the holder found; the others need not ask
                PRIMARY KEY (tenant, key))
            """,
            "CREATE INDEX leases_by_end ON ullage.leases (until_s)",
        ),
    ),
    Step(  # a clean-up asks which objects a row names; costs nothing where there are none
        oldest=1,
        statements=(
            """
            CREATE INDEX chunks_by_object ON ullage.chunks (body)
            WHERE coding IN ('raw in object', 'zstd in object')
            """,
        ),
    ),
    Step(
        oldest=1,
        statements=(
            """
            CREATE TABLE ullage.messages (
                id text PRIMARY KEY,
                session bytea NOT NULL,
                place bigint GENERATED ALWAYS AS IDENTITY,  -- in the order they were written
                role text NOT NULL,
                content text NOT NULL,  -- what it says, for people who look
                wire text NOT NULL,  -- the message as its provider takes it, JSON
                is_compacted boolean NOT NULL DEFAULT false,
                created_at text NOT NULL)
            """,
            "CREATE INDEX messages_of ON ullage.messages (session, is_compacted, place)",
            """
            CREATE TABLE ullage.compactions (
                id text PRIMARY KEY,
                place bigint GENERATED ALWAYS AS IDENTITY,
                message_id text NOT NULL,  -- the first message that it does not replace
                summary bytea NOT NULL,
                messages bigint NOT NULL,
                tokens bigint NOT NULL,
                created_at text NOT NULL)
            """,
            "CREATE INDEX compactions_at ON ullage.compactions (message_id)",
        ),
    ),
    Step(
        oldest=1,
        statements=(
            """
            CREATE TABLE ullage.receipts (
                day text NOT NULL,
                tenant bytea NOT NULL,
                model text NOT NULL,
                client text NOT NULL,
                is_held_out integer NOT NULL,
                writer text NOT NULL,
                requests bigint NOT NULL,
                conversations bigint NOT NULL,
                unreported bigint NOT NULL,
                unpriced bigint NOT NULL,
                recalls bigint NOT NULL,
                recall_tokens bigint NOT NULL,
                sent_fresh bigint NOT NULL,
                sent_read bigint NOT NULL,
                sent_written bigint NOT NULL,
                sent_output bigint NOT NULL,
                raw_fresh bigint NOT NULL,
                raw_read bigint NOT NULL,
                raw_written bigint NOT NULL,
                raw_output bigint NOT NULL,
                is_open integer NOT NULL,
                written_s bigint NOT NULL,
                sent_usd double precision NOT NULL,
                raw_usd double precision NOT NULL,
                recall_usd double precision NOT NULL,
                PRIMARY KEY (day, tenant, model, client, is_held_out, writer))
            """,
        ),
    ),
    Step(
        oldest=1,
        statements=(
            """
            CREATE TABLE ullage.spending (
                budget text NOT NULL,
                tenant bytea NOT NULL,
                period text NOT NULL,
                writer text NOT NULL,
                version bigint NOT NULL,
                tokens bigint NOT NULL,
                calls bigint NOT NULL,
                estimated_calls bigint NOT NULL,
                unpriced_calls bigint NOT NULL,
                reserved_tokens bigint NOT NULL,
                lapse_s bigint NOT NULL,  -- without a newer row, what is reserved counts no longer
                limit_tokens bigint NOT NULL,
                resets_s bigint NOT NULL,
                written_s bigint NOT NULL,
                usd double precision NOT NULL,
                reserved_usd double precision NOT NULL,
                limit_usd double precision NOT NULL,
                PRIMARY KEY (budget, tenant, period, writer))
            """,
        ),
    ),
    Step(
        oldest=1,
        statements=(
            "ALTER TABLE ullage.receipts ADD COLUMN counted bigint NOT NULL DEFAULT 0",
            "ALTER TABLE ullage.receipts ADD COLUMN counted_tokens bigint NOT NULL DEFAULT 0",
            "ALTER TABLE ullage.receipts ADD COLUMN counted_raw_tokens bigint NOT NULL DEFAULT 0",
        ),
    ),
    Step(
        oldest=1,
        statements=(
            "ALTER TABLE ullage.receipts ADD COLUMN unbilled bigint NOT NULL DEFAULT 0",
        ),
    ),
)
"""The steps that lead from each version to the next. Never edited, only added to."""

_FIRST = (
    "CREATE SCHEMA IF NOT EXISTS ullage",
    """
    CREATE TABLE IF NOT EXISTS ullage.versions (
        version integer PRIMARY KEY,
        oldest integer NOT NULL,
        taken_at timestamptz NOT NULL DEFAULT now())
    """,
)
_THERE = Query("SELECT to_regclass('ullage.versions') IS NOT NULL")
_VERSION = Query(
    "SELECT coalesce(max(version), 0), coalesce(max(oldest), 0) FROM ullage.versions"
)
_TAKEN = "INSERT INTO ullage.versions (version, oldest) VALUES (%(version)s, %(oldest)s)"


def prepare() -> Asking[None]:
    """Take the steps that are missing; nothing is written if none is.

    Raises:
        StoreError: the schema is of a later version that this one does not work with.
    """
    ((exists,),) = (yield (_THERE,))[0]
    if exists:
        version = yield from _version()
        if version >= len(MIGRATIONS):
            return
    lock = Query("SELECT pg_advisory_xact_lock(%(lock)s)", {"lock": _LOCK})
    yield (
        BEGIN,
        lock,
        *map(Query, _FIRST),
    )  # the lock: one worker takes the steps
    version = yield from _version()
    for number, step in enumerate(MIGRATIONS[version:], version + 1):
        note = Query(_TAKEN, {"version": number, "oldest": step.oldest})
        yield (*map(Query, step.statements), note)
    yield (COMMIT,)


def _version() -> Asking[int]:
    ((version, oldest),) = (yield (_VERSION,))[0]
    if oldest > len(MIGRATIONS):
        reason = (
            f"its tables are of version {version}, this ullage knows {len(MIGRATIONS)}, and those "
            f"before {oldest} may not write there. Upgrade ullage"
        )
        raise StoreError(NAME, "open", reason)
    return int(version)
