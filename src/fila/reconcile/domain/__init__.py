"""The rules of reconciliation, pure: values in, values out, no clock and no I/O.

Units, so that every comparison is one of whole numbers and comes out the same here, in SQL and in Spark:
shares and trust are basis points (`_bp`: 10,000 is the whole, 500 is 5 %), times are milliseconds since 1970 (`_ms`).
"""
