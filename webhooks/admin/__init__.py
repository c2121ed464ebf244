"""The admin of endpoints, of what was sent to them, and of the cluster's own tables."""

from webhooks.admin import cluster, endpoints, records

__all__ = ["cluster", "endpoints", "records"]
