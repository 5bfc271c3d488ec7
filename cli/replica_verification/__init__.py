"""`quorate replica-verification`: fetches.py reads all replicas of partitions, and comparison.py
compares them.
"""
