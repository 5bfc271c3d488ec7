"""`quorate cluster`: its id, its nodes (description.py), and the removal of brokers.

decommission.py moves all replicas off a broker, then broker_removal.py removes its registration.
"""
