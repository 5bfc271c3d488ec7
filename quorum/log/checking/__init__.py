"""Checks of stored batches.

- integrity.py: what is read from the disk is checked before anyone gets it.
- verify.py, index_check.py, check_result.py: the check of a log that is not open.
"""
