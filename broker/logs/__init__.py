"""The log directory of a broker: its partition logs, and how they are opened and checkpointed.

`log_manager.py` is the owner. `found.py` holds the directories that a start found,
`log_opening.py` opens one, `checkpoint_files.py` and `producer_snapshots.py` hold what shortens
the next recovery. `docs/protocol/storage-and-recovery.md` has the rules.
"""
