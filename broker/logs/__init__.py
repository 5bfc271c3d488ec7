"""The log directories of a broker: opening, flushing, checkpointing and deleting partition logs.

Decisions: may a log be trusted after a start, from which offset must it be recovered, when is it
flushed, and when is a directory removed.

Inputs: the directories and checkpoint files that the start finds, and the partitions that the
metadata assigns to this broker. Outputs: open logs (`quorum/log`), producer states, and checkpoint
files in Kafka's format.

In reading order:

- `log_manager.py`: all log directories; `directory_choice.py`: the rules of placement and failure.
- `log_directory.py`: one log directory; `log_removals.py`: its delayed removals.
- `found_logs.py`: which log counts if the start found several; `future_logs.py`: the copies that
  moves between directories make, and the swap at the end of a move.
- `unopened_directories.py`: the directories that the start found; `log_opening.py`: the opening of
  one log.
- `log_flusher.py`: the periodic flush; `offset_checkpoints.py`: the rules of the checkpointed
  offsets; `checkpoint_files.py`: the order of their writes from two threads.
- `log_cleaner.py`: the log cleaner, which chooses compacted logs; `cleaner_worker.py`: one cleaning
  after the other; `compacted_log.py`: the cleaner's view of a partition; `cleaner_settings.py` and
  `cleaner_figures.py`: its settings, and the figures of its metrics.
- `producer_snapshots.py`: the files of producer states; `producer_loading.py`: the states from a
  snapshot and the log behind it.

`docs/protocol/storage-and-recovery.md`, `docs/protocol/log-directories.md` and
`docs/protocol/compaction.md` state the rules with their tests.
"""
