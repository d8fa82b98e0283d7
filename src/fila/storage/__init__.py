"""Where state is kept: an ordered key-value store with atomic batches, and the form of keys and records in it."""
