"""Every legal history over a small alphabet of shapes: what the fuzzer leaves to chance.

python -m lab.enumerate --length 2          or: make enumerate LENGTH=2
python -m lab.enumerate --length 2 --every  with every row of the block tables
python -m lab.enumerate --list              letters and families

letters      the alphabet of each wire, from shapes and from the tables of blocks
families     models, of those with equal rules one
treatments   first sight, prune, account, repair
walk         the histories of a length, tried
"""
