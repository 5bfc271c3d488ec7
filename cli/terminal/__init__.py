"""The output of commands on a terminal.

- tables.py: tables, colours and bars, and plain lines in a pipe.
- progress.py: the progress of work that takes more than two seconds."""
