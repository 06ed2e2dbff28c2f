"""What a turn asks of what is built on it: of a format, of the stages, of whoever runs it."""
