"""Policy in Lua: the hooks of a queue, run in a sandbox with limits on time and memory."""
