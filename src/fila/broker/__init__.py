"""The broker: one owner of all state, one write a tick."""
