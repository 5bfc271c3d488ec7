"""Tools for the data directory of a node that is stopped: format, verify, repair, rebuild a quorum.

All calls block. They take the directory's lock where they write, and change nothing that they
cannot vouch for.

Files in reading order:

- `storage_format.py`: a new directory, and what a start requires of one.
- `storage_verify.py`, `metadata_check.py`: results; `storage_repair.py`, `epoch_repair.py`: what
  may be mended.
- `source_directories.py`, `force_voters.py`, `rebuilt_directory.py`: a quorum that is lost for
  good.
"""
