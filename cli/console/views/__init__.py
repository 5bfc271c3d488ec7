"""The tables that are read only while a page shows them, once for all pages.

- table.py: the rows and columns that a page shows.
- views.py: the views that pages look at, and the tables that they have.
- answers.py: requests to several brokers, and the notes about those that do not answer.
- log_ends.py: the log end offsets of replicas.
- groups.py, group_rows.py: consumer groups, and the lag of each partition.
- replicas.py, replica_rows.py: the lag of each replica behind its leader.
- configs.py, config_rows.py: the configs of brokers and topics.
- reassignments.py, reassignment_rows.py: the progress of reassignments, and what delays them.
- changes.py, change_rows.py: the newest changes with their stages, and the stages of all nodes.
- timeline.py, change_events.py, partition_lines.py: the events of the metadata log.

The modules with `_rows` in their names, change_events.py and partition_lines.py are pure.
"""
