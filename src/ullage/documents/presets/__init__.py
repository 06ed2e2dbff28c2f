"""The presets, a module a document."""
