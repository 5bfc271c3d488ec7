"""The logs on this broker, for producers and consumers.

- produce.py, fetch.py: records. metered.py counts them for quotas, and authorized_records.py checks
  the client's rights.
- list_offsets.py, log_lookups.py, delete_records.py: offsets.
- producer_ids.py, describe_producers.py: idempotent producers.
"""
