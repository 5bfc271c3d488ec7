"""The opening of a log.

- loading.py: from the files to a log; leftovers.py: what a crash left of removals and swaps.
- recovery.py: after a crash, the end that is cut off, and the damage that is refused.
"""
