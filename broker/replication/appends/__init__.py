"""Appends and deletions by clients, and the requests that wait.

- produce.py, delayed_produce.py: Produce. recompressions.py: batches that wait for their codec.
- delete_records.py: DeleteRecords.
- delayed_operations.py: requests that wait for an event or a timeout (Kafka's purgatory).
"""
