"""Tools for the data directory of a stopped node: format, verify, repair, and rebuild a lost
quorum.

The commands are `quorate storage format`, `verify` and `repair-epoch`, and `quorate metadata-quorum
force-voters` (`cli/`). `quorate storage declare` is in `quorum/node/opening/metadata_opening.py`.
The package decides the following:

- the content of a newly formatted directory;
- the meaning of each fault in a directory: a torn write, a file that can be rebuilt, or damage of
  records that may have been acknowledged;
- the faults that a repair may remove;
- the log from which a quorum that lost its majority is rebuilt, and its new voters and epoch.

Inputs are the files of a `Disk` and node configurations. Outputs are results of checks, plans and
changed directories. All functions block, in one thread. The caller holds the lock of the directory,
or takes it by `force_voters.locked`, so that no node runs meanwhile. A tool removes or rewrites
bytes only in three cases: they were never acknowledged, other files have their content, or the
operator requests it.

Files in reading order:

- `storage_format.py`: formats a directory.
- `storage_verify.py`, `metadata_check.py`: check a directory.
- `storage_repair.py`, `epoch_repair.py`: repair it.
- `source_directories.py`, `force_voters.py`, `rebuilt_directory.py`: rebuild a quorum.

A node makes its own checks at its start in `quorum/node/opening/data_directory.py` and
`quorum/node/opening/directory_replacement.py`. The rules and their tests are in
`docs/protocol/storage-and-recovery.md` and `docs/protocol/rebuilding-a-quorum.md`, the files in
`docs/protocol/data-directory.md`.
"""
