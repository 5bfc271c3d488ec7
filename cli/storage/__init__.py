"""`quorate storage`: formats, verifies and repairs the directories of stopped nodes.

command.py has the commands of kafka-storage. verify.py, declare.py and epoch.py have ours.
"""
