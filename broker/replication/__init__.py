"""The partition replicas of a broker: produce, fetch, replication, and the application of metadata.

Decisions are in `broker/partition`; this package connects them with logs, requests, timers and
other brokers. Everything runs on the event loop, except for the openings of existing logs and the
loads of producer states, which run in the disk's thread, like the flushes and removals of
`broker/logs`.

Inputs: requests of the client port and of followers, responses of leaders, and committed images of
the metadata. Outputs: responses, fetch requests to leaders, and proposed ISR changes.

In reading order:

- `replica_manager.py`: the parts of a broker's replication, and their timers.
- `partition_registry.py` and `hosted_partition.py`: the open replicas, and the requests that wait
  for each.
- `produce.py`, `delete_records.py` and `delayed_operations.py`: appends, deletions, and waiting
  requests (Kafka's purgatory).
- `reading.py`, `consumer_fetches.py` and `consumer_sessions.py`: Fetch of consumers;
  `read_replicas.py`: the followers to which a leader sends consumers (KIP-392);
  `replica_sessions.py` and `replica_session.py`: Fetch of followers; `fetch_session_cache.py`: the
  fetch sessions of both (KIP-227).
- `replica_fetcher_manager.py`, `fetcher_numbers.py`, `replica_fetcher.py` and
  `partition_fetch_state.py`: this broker as a follower.
- `replication_throttle.py` and `simple_rate.py`: the throttles of replication (KIP-73).
- `metadata_applier.py`, `replica_configuration.py` and `partition_opener.py`: metadata changes
  become replicas, roles and settings; `state_change_log.py`: their log lines.
- `replica_placement.py` and `offline_directories.py`: the log directories of the replicas, and the
  failure of one.
- `replica_moves.py`, `replica_move.py` and `move_copy.py`: moves between log directories.
- `replica_logs.py`: the ends of the logs for the controller, before an unclean election
- `producer_loader.py`, `damage.py`, `traffic.py`, `settings.py`: producer states, damaged logs,
  counters and settings.

`docs/protocol/isr.md` and `docs/protocol/log-divergence.md` state the rules with their tests.
"""
