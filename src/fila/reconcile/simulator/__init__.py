"""Platforms that do not exist: a real HTTP server with figures for every post and faults that can be set."""

from fila.reconcile.simulator.faults import Faults
from fila.reconcile.simulator.server import Simulator
from fila.reconcile.simulator.truth import truth

__all__ = ["Faults", "Simulator", "truth"]
