"""Consumer groups.

- find_coordinator.py, group_requests.py: the way of a request to the shard of its group.
- group_membership.py, group_admin.py: members and groups.
- offset_commit.py, offset_fetch.py, offset_fetch_v7.py, offset_delete.py: committed offsets.
"""
