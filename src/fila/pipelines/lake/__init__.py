"""Delta Lake tables of the reconciliation: what they hold (`contract`), how they are read and written (`lake`), which
runs there were (`ledger`), and how they are kept small (`maintenance`).

    delta.py         the jars of Delta Lake, and the session settings it needs
    contract.py      tables, columns, partitions, and the version of all of them
    lake.py          read, append and merge, each once per run
    ledger.py        runs that began, runs that finished, files that were read
    legacy.py        imports a folder of runs, the layout before the tables
    maintenance.py   compaction, retention

A run is a sequence of commits, one for each table. Rules of this package:
- The first commit of a run, to `bronze/received`, is all that depends on its input. Everything after it is a function
  of tables, so whoever comes next can finish a run whose driver died.
- Each commit carries the number of its run, and Delta Lake takes a number once for each table. So a run that is
  finished by two drivers, one after the other or at once, is written once.
- The last commit, to `ledger/runs`, makes the run count. It names the version of each table, so that a reader sees
  whole runs only, and any run that is still kept.
"""
