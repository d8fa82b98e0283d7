"""What the outside can see of a running broker. It watches: nothing that decides depends on it."""
