"""`quorate consumer-groups`, as kafka-consumer-groups. group_view.py has its lines; resets.py has
--reset-offsets.
"""
