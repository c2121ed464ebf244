"""The cluster's sign of life and django-q2's tables, for superusers to look at.

Its own pages add schedules in free form, run tasks again and delete what failed.
"""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django_q.models import Failure, OrmQ, Schedule, Success

from organizations.tenant_admin import (
    InstallationAdmin,
)
from webhooks.models import Heartbeat


@admin.register(Heartbeat)
class HeartbeatAdmin(InstallationAdmin[Heartbeat]):
    list_display = ("cluster", "host", "started_at", "beat_at")


for model in (Schedule, Success, Failure, OrmQ):
    admin.site.unregister(model)


@admin.register(Schedule)
class ScheduleAdmin(InstallationAdmin[Any]):
    """Empty, unless somebody wrote to the table: nothing here runs from it."""

    list_display = ("id", "name", "func", "schedule_type", "next_run")


@admin.register(Success, Failure)
class TaskAdmin(InstallationAdmin[Any]):
    """The last tasks that workers ran."""

    ordering = ("-stopped",)
    list_display = ("name", "func", "cluster", "started", "stopped", "attempt_count")


@admin.register(OrmQ)
class QueuedTaskAdmin(InstallationAdmin[Any]):
    """Ordinary tasks that wait for a worker. Deliveries wait in their own rows."""

    list_display = ("id", "key", "name", "func", "lock")
    fields = ("id", "key", "lock", "name", "func", "args", "kwargs")
    readonly_fields = fields
