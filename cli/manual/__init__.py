"""The manual of the `quorate` command, made from the click commands themselves.

`description.py` reads the commands into plain data, `roff.py` renders the data as man pages, and
`command.py` writes them. A page and `--help` have the same source, so that they cannot differ.
"""
