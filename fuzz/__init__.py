"""A plain seeded fuzzer: legal histories in, illegal or lossy views out, if there are any.

    python -m fuzz --seconds 60        or: make fuzz SECONDS=60
    python -m fuzz --only 1234         one history again, by its number

History ``n`` of a seed is the same everywhere, so a run is resumed by its number and a finding
is told by it.
"""
