"""Reference pages, each made from the one place in the code that says it, so that they cannot drift."""
