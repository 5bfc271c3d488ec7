"""`quorate status`: the cluster at a glance, the worst first.

- command.py, watch.py: the command, once or repeatedly.
- cluster_status.py, quorum_health.py, partition_problems.py, unclean_elections.py: the parts of the
  output. explanations.py finds the cause of each problem in the metadata log. status_tables.py has
  the tables of a terminal.
- changes.py, node_stages.py, changes_in_flight.py: --changes, the stages of changes on all nodes.
"""
