"""Errors of pipelines.

PipelineError
├── BadInput          files that cannot be what they are said to be
└── RunTaken          another run finished first
"""


class PipelineError(Exception):
    """A pipeline stopped. Nothing of what it was writing remains."""


class BadInput(PipelineError):
    """The input cannot be used. The text names the file and what is wrong with it."""


class RunTaken(PipelineError):
    """Another run into the same folder finished first."""
