"""Who may use the API, and for what: keys, roles and one table of routes."""
