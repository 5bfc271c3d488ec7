"""The partition replicas of a broker: produce, fetch, replication, and the application of metadata.

Decisions are in `broker/partition`; this package connects them with logs, requests, timers and
other brokers. Everything runs on the event loop, except for the openings of existing logs and the
loads of producer states, which run in the disk's thread, like the flushes and removals of
`broker/logs`.

Inputs: requests of the client port and of followers, responses of leaders, and committed images of
the metadata. Outputs: responses, fetch requests to leaders, and proposed ISR changes.

In reading order:

- `replica_manager.py`: the parts of a broker's replication, and their timers.
- `partitions/`: the open replicas and their settings.
- `appends/`: Produce, DeleteRecords, and waiting requests (Kafka's purgatory).
- `fetches/`: Fetch of consumers and followers.
- `follower/`: this broker as a follower.
- `directories/`: log directories, their failure, and moves between them.
- `metadata_applier.py`: metadata changes become replicas, roles and settings.
- `replica_logs.py`: the ends of the logs for the controller, before an unclean election.

`docs/protocol/isr.md` and `docs/protocol/log-divergence.md` state the rules with their tests.
"""
