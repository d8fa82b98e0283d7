"""What-if: a journal's arrivals once more through the broker's own scheduler, as it was or under other settings.

    entries.py    the journal as it is read here
    world.py      the broker's state without a store, and how entries change it
    known.py      what a replay knows of the scheduler where it begins
    follow.py     the replay that is held against the journal: the same messages in the same order
    changes.py    what is set differently
    simulate.py   the replay that goes its own way, on a clock of its own
    tally.py      waits and service of a replay, by window
    parts.py      what is replayed by itself: queues that share throttles, day by day
    pipeline.py   all of it on Spark, with tables and a page

Rules of this package:
- No rule of the broker is written a second time: lanes, rounds, throttles, delays and leases are those of `fila.core`,
  and what a tick does to them is planned and committed by `fila.broker`.
- A replay reads its entries once, in order, and keeps only messages that exist: memory does not grow with the journal.
- Programs outside import it where they run it: it needs the extras `fila[spark]` and `fila[server]`.
"""
