"""Objects of an object store as log files, listed and read by obstore, the extra ``s3``.

Keys, region and endpoint come from the environment, as the vendor's own tools take them; region
and endpoint may be in the address (``?region=…&endpoint=…``), as in that of a store's objects. An
object is fetched whole into a file without a name before it is read, for a zip is read from its
end.
"""

from __future__ import annotations

import tempfile
from functools import partial
from typing import Any, BinaryIO

from ullage.core.errors import ConfigError
from ullage.core.installing import install_remedy
from ullage.tools.replay.readers._files import LogFile

_CHUNK_BYTES = 8 * 1024 * 1024


def objects_under(address: str) -> list[LogFile]:
    """The object of an address, or those below it, sorted; hidden ones are left out.

    Raises:
        ConfigError: obstore is not installed, or the store cannot be listed.
    """
    refused = partial(ConfigError, "the address of the logs")
    location, _, query = address.partition("?")
    scheme, _, rest = location.partition("://")
    bucket, _, prefix = rest.partition("/")
    pairs = (pair.partition("=") for pair in query.split("&") if pair)
    options: dict[str, Any] = {name: value for name, _, value in pairs}
    if options.get("endpoint", "").startswith("http:"):
        options["client_options"] = {"allow_http": True}
    try:
        from obstore.store import from_url
    except ImportError:
        reason = "obstore is not installed"
        raise refused(
            f"{reason}, which reads object stores", f"{install_remedy('s3')}."
        ) from None
    try:
        store: Any = from_url(f"{scheme}://{bucket}/", **options)
        chunks = list(store.list(prefix or None))
        objects = [
            (item["path"], item["size"]) for chunk in chunks for item in chunk
        ]
        if not objects and prefix and not prefix.endswith("/"):
            alone = store.head(prefix)
            return [_object(store, alone["path"], alone["size"])]
    except FileNotFoundError:
        return []
    except Exception as error:  # noqa: BLE001 - kinds of the vendors; they may name keys
        reason = f"the object store cannot be listed ({type(error).__name__})"
        raise refused(
            reason, "Look at its name, the endpoint and the keys it is given."
        ) from None
    depth = len(prefix.rstrip("/"))
    return [
        _object(store, key, size)
        for key, size in sorted(objects)
        if not any(part.startswith(".") for part in key[depth:].split("/"))
    ]


def _object(store: Any, key: str, size_bytes: int) -> LogFile:
    return LogFile(
        key.rpartition("/")[2], size_bytes, partial(_fetched, store, key)
    )


def _fetched(store: Any, key: str) -> BinaryIO:
    file = tempfile.TemporaryFile()  # noqa: SIM115 - its reader closes it
    try:
        for chunk in store.get(key).stream(min_chunk_size=_CHUNK_BYTES):
            file.write(chunk)
    except Exception as error:  # noqa: BLE001 - kinds of the vendors; they may name keys
        file.close()
        raise OSError(
            0, f"the object store says {type(error).__name__}"
        ) from None
    file.seek(0)
    return file
