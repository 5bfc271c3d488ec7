"""The life of a broker in the cluster.

- registration.py, heartbeat.py, unregister.py: a broker joins, stays and leaves.
  broker_states.py has its states. docs/differences.md, "Failures are noticed sooner", says how
  hints shorten a session.
- broker_changes.py: the leaders and ISRs that follow when a broker changes its state.
- log_directories.py: the directories of a broker, and the failure of one (KIP-858).
- producer_ids.py: the blocks of producer ids that brokers ask for.
"""
