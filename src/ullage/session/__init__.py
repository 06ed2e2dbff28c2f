"""Sessions: a turn as most users meet it. `Session`, and its twin for an event loop."""
