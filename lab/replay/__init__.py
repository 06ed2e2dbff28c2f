"""Replay, as we judge ourselves by it: ``ullage replay``, with more to compare with.

    python -m lab.replay PATH… --policy default --policy recency --policy belady --serve

frame, adversaries   policies that are no presets: what to beat, what must lose
framed, subjects     one run under such a policy
watch, chooser       what was needed, with ranks of refs, re-uses and words left out
service, served      every miss paid for
compare              floors, spreads, skill, differences, curves and fronts over many runs
split, curves        development and held-out tasks; how long a result is needed
"""
