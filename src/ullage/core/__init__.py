"""The kernel: values, history, counting, the contract with what is built on it, and the turn.

It is pure, and imports nothing else of ours. `docs/architecture.md` says what it promises, and
by which test.
"""
