"""Ollama's own chat, ``POST /api/chat``: everything that is known of this wire."""
