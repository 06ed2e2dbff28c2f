"""Programs to copy from. Each runs from the root of a clone: ``python -m examples.NAME``."""
