"""Nodes as processes: one in the foreground, or a whole cluster on this machine.

- server.py, node_process.py, log_format.py, line_limit.py: one node as a process.
- up.py, preparation.py, secured_up.py, down.py, cluster_dir.py, ports_in_use.py, supervisor.py,
  cluster_processes.py, readiness.py, lifeline.py, console_process.py: a local cluster, its
  directory and its processes.
- client_protocol.py: the check that a command uses the security protocol of the brokers.
"""
