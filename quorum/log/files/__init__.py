"""The names, settings and errors of a log, and the small files next to its segments.

- names.py, settings.py, errors.py: names of files and directories, settings, and all errors.
- checkpoints.py: how a small file is replaced and read back; vote, epochs, clean shutdown.
- flushed_marker.py: the offset up to which the metadata log was flushed.
- offset_gaps.py: the marker of a log in which offsets may be missing.
- archive.py: the directory that receives segments and snapshots when their retention ends.
"""
