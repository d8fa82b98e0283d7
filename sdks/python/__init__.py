"""The driver of the Python SDK for the conformance suite."""
