"""The journal of a broker, kept in a Delta table for longer than the broker keeps it."""
