"""Conversations of a store, told without their callers."""
