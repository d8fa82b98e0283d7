"""Asking platforms what a post brought."""

from fila.reconcile.platforms.fetcher import Fetcher, Fetchers
from fila.reconcile.platforms.guarded import GuardedFetchers
from fila.reconcile.platforms.http import HttpFetcher
from fila.reconcile.platforms.settings import Platform

__all__ = ["Fetcher", "Fetchers", "GuardedFetchers", "HttpFetcher", "Platform"]
