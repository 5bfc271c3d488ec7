"""What happened when: the events of a run.

metadata_tail.py follows the metadata log, timeline.py has the events and the states of nodes and
partitions, and outage.py finds the gaps in which a partition could not be written.
"""
