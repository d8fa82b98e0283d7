"""Secrets that can be found again: whatever users send, or must not be told, begins with a mark."""

import string

from hypothesis import strategies as st

MARK = "zq7X"
"""Begins every secret, so that no other text contains one."""

secrets = st.text(string.ascii_letters + string.digits, min_size=8, max_size=40).map(MARK.__add__)

odd = st.sampled_from(["", "\n", "\x00", "é", " ", "=", "\x1b[31m", "Bearer ", "." * 3])
"""What stands beside one, and makes programs complain."""


def lines_with(forbidden, log):
    """The lines of a log that tell something that they must not."""
    return [line for line in log.splitlines() if any(each in line for each in forbidden)]
