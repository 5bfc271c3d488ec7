"""`quorate history`: questions to a metadata log (quorum/analytics), which may be in an archive.

- command.py, options.py: the commands, and what they share.
- source.py: where the log is.
- questions.py, stream.py: questions about a loss, and tables that follow a log.
- rehearsal.py: scenarios that are played on the metadata of a real cluster.
- text.py, questions_text.py: the output.
"""
