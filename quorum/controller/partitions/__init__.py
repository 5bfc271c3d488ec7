"""The leader, the ISR and the replicas of existing partitions.

- elections.py, eligible_leaders.py, unclean_elections.py: the leader of one partition.
  eligible_leaders.py has ELR (KIP-966, part 1).
- partition_change.py: the record of one change. partition_states.py: the states of a partition.
- alter_partition.py, elect_leaders.py, reassign.py: changes that a leader or an administrator
  requests. reassignment_completion.py: the end of a reassignment.
- scheduled_elections.py, unclean_recovery.py: elections that no request starts.
"""
