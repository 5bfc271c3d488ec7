"""`quorate dump-log`, as kafka-dump-log: command.py has the options, and lines.py has the content
of files.
"""
