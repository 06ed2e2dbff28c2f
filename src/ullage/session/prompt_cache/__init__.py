"""The prompt cache: what was sent before, what of a request changed, and what a break cost."""
