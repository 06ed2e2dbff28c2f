"""A live session, followed in its store while another process writes to it.

`ullage.watch.reading` reads what is new in the file, and never writes; `ullage.watch.screen` says
it on a terminal.
"""
