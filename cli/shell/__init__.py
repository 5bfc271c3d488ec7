"""`quorate metadata-shell`: the cluster's metadata as a tree of files, as in kafka-metadata-shell.

The shell is read-only. Its input is a snapshot, a segment or a log directory, of Quorate or Apache
Kafka. Its output is Kafka's, line by line (tests/golden/shell.txt), except for `find` with a glob
and the names of default quotas, which Kafka's shell leaves out. Files in reading order:

- command.py, interactive.py: the command, and the dialogue at a terminal.
- source.py, foreign_state.py: the input, and the metadata that only Kafka uses.
- nodes.py, texts.py: the tree, and the text of its leaves.
- paths.py, reading.py, commands.py, columns.py: paths with globs, parsing, commands, layout."""
