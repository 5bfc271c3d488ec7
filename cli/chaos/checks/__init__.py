"""The verdict of a run: pure functions of its observations.

- evidence.py: everything that a run saw. Its parts are in faults.py, availability.py (of clients),
  pinned_client.py and observations.py (of metadata, groups and moves).
- table.py: all checks. Each module *_checks.py has one family of them. check.py has the result of
  one check.
"""
