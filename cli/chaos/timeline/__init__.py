"""The events of a run, by time.

- timeline.py: events and intervals. outage.py: the gaps in which a partition could not be written.
- cluster_states.py: the states of nodes and partitions.
- facts.py: the interface of their sources. logged_facts.py and metadata_tail.py read the metadata
  log. cluster_views.py merges the answers of brokers.
"""
