"""Who may do what: API keys, principals, roles and their grants. Pure: takes values and `now`, does no I/O."""
