"""`quorate topics`, as kafka-topics. command.py has the options; topic_view.py has the values and
lines of --describe; topic_changes.py has the requests that create and delete topics.
"""
