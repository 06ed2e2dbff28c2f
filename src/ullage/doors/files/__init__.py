"""Settings files of other programs, changed in place and given back.

jsonc.py        JSON with comments: where its values stand
changing.py     a change of a file: shown first, made at once or not at all, a backup beside it
"""
