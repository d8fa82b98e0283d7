"""Metrics, traces and logs of a running broker. It only reads: no decision of the broker depends on it."""
