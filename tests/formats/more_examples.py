"""More of the rules that break in several ways: what breaks one, and a near miss, as the first.

A row is (format, rule, what is wrong, the request that breaks the rule and no other, the near
miss). `tests.formats.rule_examples` has one row of every rule.
"""

from tests.formats.rule_examples import (
    GO,
    MANUAL,
    NOTE,
    TEXT,
    THOUGHT,
    assistant,
    gave,
    messages,
    use,
    user,
)

FIRST, SECOND = (assistant(use("a")), user(gave("a"))), (assistant(use("b")), user(gave("b")))
THINKING_FIRST = (assistant(THOUGHT, use("a")), user(gave("a")))

ANTHROPIC = [
    ("A14", "a later step alone begins with thinking",
     messages(GO, *FIRST, assistant(THOUGHT, use("b")), user(gave("b")), **MANUAL),
     messages(GO, *THINKING_FIRST, *SECOND, **MANUAL)),
    ("A14", "behind a system message",
     messages(GO, assistant(TEXT, use()), user(gave()), NOTE, **MANUAL),
     messages(GO, assistant(THOUGHT, TEXT, use()), user(gave()), NOTE, **MANUAL)),
    ("A14", "the user spoke beside earlier results",
     messages(GO, assistant(THOUGHT, use("a")), user(gave("a"), TEXT), *SECOND, **MANUAL),
     messages(GO, *THINKING_FIRST, assistant(use("b")), user(gave("b"), TEXT), **MANUAL)),
    ("A14", "the turn before began with thinking, this one does not",
     messages(GO, *THINKING_FIRST, assistant(TEXT), GO, *SECOND, **MANUAL),
     messages(GO, *FIRST, assistant(TEXT), GO, assistant(THOUGHT, use("b")), user(gave("b")),
              **MANUAL)),
]  # fmt: skip

MORE = [("anthropic", *row) for row in ANTHROPIC]
