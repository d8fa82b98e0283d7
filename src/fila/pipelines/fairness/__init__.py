"""Fairness of a broker, computed from its journal."""
