"""What a rule of the controller gets and returns.

- context.py, settings.py: the input of a rule. result.py, decision_steps.py: its output, complete
  or in steps. messages.py: the messages between nodes and the active controller.
- partition_index.py, effective_configs.py: indexes and values computed from the image.
- sessions.py, hints.py, replica_log_queries.py: the soft state, which no record holds.
"""
