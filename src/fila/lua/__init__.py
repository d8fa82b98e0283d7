"""Policy in Lua: the hooks of a queue, run where they cannot hurt the broker."""
