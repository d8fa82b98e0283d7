"""Pages for people: one HTML file each, with its plots inside, that fetches nothing and runs no script."""
