"""Tests of quorum/rpc: links, channels, HTTP and budgets. kafka/ holds those of rpc/kafka."""
