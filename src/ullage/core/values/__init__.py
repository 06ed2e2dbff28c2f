"""Values that every room speaks in: messages, edits, effects, events, usage, limits, wording."""
