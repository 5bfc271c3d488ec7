"""The clients of a run, and the record of what they did.

- writer.py, reader.py, metadata_probe.py, brokers.py: the clients.
- group.py, group_member.py, group_log.py: a consumer group, whose members are processes.
- admin_load.py: an admin client.
- ledger.py, read_delays.py, latencies.py: what they did, and how long it took.
- read_back.py, comparison.py, replicas.py: all records at the end, compared with the ledger.
"""
