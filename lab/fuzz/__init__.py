"""A plain seeded fuzzer: legal histories in, illegal or lossy views out, if there are any.

    python -m lab.fuzz --seconds 60        or: make fuzz SECONDS=60
    python -m lab.fuzz --coverage          with the table of rules, features and edits
    python -m lab.fuzz --only 1234         one history again, by its number

    steps       what is said, asked and answered, in no wire's words
    anthropic, chat, responses, gemini, ollama, converse      the steps as each wire writes them
    breakages   how histories go wrong in the field
    histories   history ``n`` of a seed, and the request around it
    borders     joined, seeded, changed in place, allowed tools
    stages      policies that make any legal edit anywhere
    trial       one history tried: every request it would have sent, judged
    opaque, bound                           what only the provider can read
    coverage    rule × feature × kind of edit
    tally       what was tried so far
    mutants, illegal_mutants                guards taken away, rules broken

History ``n`` of a seed is the same everywhere, so a run is resumed by its number and a finding
is told by it. `docs/fuzzing.md` says what is generated, checked and reached.
"""
