"""The history of the schema, one step per file. Steps that were released are never changed."""
