"""The command line, and what looks at runs: replay, and watching a store."""
