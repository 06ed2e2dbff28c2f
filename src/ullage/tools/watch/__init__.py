"""A live session, followed in its store while another process writes to it.

`ullage.tools.watch.reading` reads what is new in the file, and never writes;
`ullage.tools.watch.screen` says it on a terminal.
"""
