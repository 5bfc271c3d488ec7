"""The nodes of a cluster, and how a run kills, stops, pauses and starts them.

- cluster.py: a cluster as a run uses it. node_control.py: the interface to its nodes.
- signal_control.py: the processes of `quorate up`, by signals.
- process_cluster.py, local_cluster.py, pause_guard.py, fault_sockets.py: such a cluster.
- listed_cluster.py, command_control.py: the nodes of a nodes.toml, by its commands.
- answered_facts.py: the metadata of such a cluster, as its brokers answer it.
- command_guard.py: a process that undoes these commands if the run is gone.
"""
