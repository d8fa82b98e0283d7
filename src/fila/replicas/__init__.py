"""One broker kept in several places: its ticks go through a replicated log, and other members follow."""
