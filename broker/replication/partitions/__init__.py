"""The open replicas of a broker, their settings and their counters.

- hosted_partition.py, partition_registry.py, partition_opener.py: the open replicas.
  compacted_partition.py is one as the log cleaner sees it.
- settings.py, replica_configuration.py: the settings of replicas.
- replication_throttle.py, simple_rate.py, fetcher_numbers.py: the throttles, and the fetchers, of
  both sides.
- producer_loader.py, damage.py: producer states, and stored batches that cannot be read.
- traffic.py, state_change_log.py: counters and log lines.
"""
