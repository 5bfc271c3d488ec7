"""The output of commands on a terminal.

- tables.py: tables, colours and bars, and plain lines in a pipe.
- safe_text.py: texts that cannot control a terminal.
- progress.py: the progress of work that takes more than two seconds."""
