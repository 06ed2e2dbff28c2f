"""The demo: a real agent run, kept inside a window of 64,000 tokens.

An agent answers questions about the Python code of the machine it runs on. Its tools are
real and so is what they return: whole files, hundreds of search hits. Only the model is
played: by a deterministic investigator, so that the demo needs no key and no network and
prints the same numbers twice. It sees what a model would see, the view ullage made, and
nothing else; where its evidence has left the window it calls it back as the notice says.

    python -m demo              the whole run
    python -m demo --quick      two questions
    python -m demo --run PATH   replay a recorded run of yours instead
    python -m demo --model M    a real model, with a key of yours: docs/real-model.md
"""
