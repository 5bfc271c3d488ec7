"""`quorate metadata-quorum`, as kafka-metadata-quorum: command.py describes, voters.py adds and
removes voters, and force_voters.py rebuilds a quorum that lost its majority.
"""
