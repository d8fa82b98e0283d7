"""Metrics of the broker and of jobs: what a metric is, its text for Prometheus, and the HTTP server that is scraped."""
