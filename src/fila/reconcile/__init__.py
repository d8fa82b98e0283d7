"""Reconciliation: what affiliates claim, held against what platforms report, with trust and alerts that follow."""
