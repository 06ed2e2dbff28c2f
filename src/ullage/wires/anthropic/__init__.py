"""Anthropic Messages: everything that is known of this wire."""
