"""Every bound of the console, in bytes, seconds and counts. docs/console.md lists them; a test compares the two."""

from typing import Final

#: Sessions at a time. The one that was not used for the longest time ends when another begins.
MAX_SESSIONS: Final = 256
#: A session ends when it was not used for this long. An open page uses it.
SESSION_IDLE_S: Final = 8 * 3600
#: Different keys that are signed in at a time: each has a connection to the broker.
MAX_LINKS: Final = 64
#: Failed sign-ins in a minute, from all browsers together. Further ones are refused without asking the broker.
MAX_FAILED_SIGN_INS: Final = 30
#: Requests that are answered at a time; further ones get 503.
MAX_REQUESTS: Final = 128
#: The body of a request. A script may have 256 KiB, and percent-encoding triples some of it.
MAX_BODY_BYTES: Final = 1 << 20
MAX_FIELDS: Final = 64
#: The bytes of a payload that are fetched and shown.
MAX_PAYLOAD_BYTES: Final = 64 << 10
#: Characters that are shown of a name, an error, a header.
MAX_SHOWN_CHARS: Final = 300
MAX_HEADERS_SHOWN: Final = 64
#: The bytes of one answer; a longer one becomes an error that says so.
MAX_ANSWER_BYTES: Final = 2 << 20
#: The bytes of a report in the folder of reports.
MAX_REPORT_BYTES: Final = 16 << 20
MAX_REPORTS: Final = 200

#: One sample of what is looked at, whatever the number of open pages.
SAMPLE_EVERY_S: Final = 2.0
#: What nobody has looked at for this long is no longer sampled.
WATCHED_S: Final = 900.0
#: Samples that are kept of a queue: ten minutes.
MAX_SAMPLES: Final = 300
#: Subjects (the overview, one queue) of one key that are sampled at a time.
MAX_WATCHED: Final = 16
#: Queues of the overview whose figures are asked one by one: the busiest.
MAX_OVERVIEW_QUEUES: Final = 40
#: Fairness keys of a queue in a sample.
MAX_SAMPLED_KEYS: Final = 60
#: Rows of a table on a page.
PAGE_ROWS: Final = 25
#: Dead letters that are grouped by error and key: the newest.
MAX_GROUPED_LETTERS: Final = 1000
#: Entries of the journal that are read back for the history of a message.
MAX_HISTORY_ENTRIES: Final = 50_000
#: Redrives and purges of one key that run, or whose end is still shown.
MAX_SWEEPS: Final = 8
#: Waiting messages that a script is tried on.
MAX_TRIED: Final = 50
#: How long the broker may take for an answer. It lets failed logins wait for up to 5 s.
BROKER_TIMEOUT_S: Final = 6.0
#: A broker that asks for a key is not asked again without one for this long: it would count as a failed login.
KEYLESS_PAUSE_S: Final = 60.0
