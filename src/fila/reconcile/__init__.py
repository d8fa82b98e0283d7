"""Reconciliation: compares what affiliates claim with what platforms report, and keeps trust scores and alerts."""
