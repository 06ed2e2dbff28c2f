"""What only we run, to judge ourselves: none of it is in the wheel, and ``src`` imports none of it.

bench     what a turn, a count, a replay costs; other libraries on the same runs (`lab.bench.peers`)
replay    recorded runs under policies to beat, and under some that must lose; full service
fuzz      made-up histories through every stage, judged by the rules of the wires
mutants_by_hand   faults put into the core, each noticed by its nearest tests
unused       names in src that nothing there uses
trace_turn   the rooms a request walks through, and where it climbs back
"""
