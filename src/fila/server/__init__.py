"""The network edge: decode, call the broker, encode."""
