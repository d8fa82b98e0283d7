"""Errors of the data source.

SparkMissing      pyspark or a Java runtime is not installed
OptionError       an option is missing, unknown or out of range
DataLoss          messages or journal entries that a query needs are gone
JournalOff        the broker writes no journal
"""

from fila.settings import SettingsError


class SparkMissing(Exception):
    """PySpark or Java is missing. The text says what was looked for and how to install it."""


class OptionError(SettingsError):
    """An option is missing, unknown or out of range. The text names it and what is expected."""


class DataLoss(RuntimeError):
    """What a query asks for is no longer there, and `failOnDataLoss` is on."""


class JournalOff(RuntimeError):
    """The broker writes no journal, and has none from earlier."""
