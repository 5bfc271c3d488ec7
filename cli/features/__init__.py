"""`quorate features`, as kafka-features: command.py describes, updates.py changes levels, and
tables.py prints the tables of this release.
"""
