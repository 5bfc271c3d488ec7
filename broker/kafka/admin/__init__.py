"""This broker's configs and log directories.

- alter_configs.py, tls_changes.py: changes that the broker compares with its own settings, before
  the active controller decides.
- describe_log_dirs.py, alter_replica_log_dirs.py: log directories, and moves between them.
"""
