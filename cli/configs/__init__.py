"""`quorate configs`, as kafka-configs. entities.py reads the names of its entities; quotas.py has
users, clients and ips.
"""
