"""The verdict of a run: pure functions of its observations.

observations.py has what a run saw, table.py all checks, and each other module one family of them.
check.py has the result of one check.
"""
