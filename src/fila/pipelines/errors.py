"""Errors of pipelines.

PipelineError
├── BadInput          files that cannot be what they are said to be
├── ChecksFailed      the run is written, and its data failed a check
└── RunTaken          another run was faster
"""


class PipelineError(Exception):
    """A pipeline stopped. Nothing of what it was writing remains."""


class BadInput(PipelineError):
    """The input cannot be used. The text names the file and what is wrong with it."""


class RunTaken(PipelineError):
    """Another run into the same folder finished first."""


class ChecksFailed(PipelineError):
    """The run is written, and a check of its data failed. The text says which."""
