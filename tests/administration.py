"""The admin as people use it: who is logged in, what its pages hold, and acts with their two steps."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from allauth.account.models import EmailAddress
from django.contrib import admin
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.db.models import Model
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from django_q.models import OrmQ, Schedule, Task

from organizations.actors import Actor
from organizations.models import User
from tests.factories import Scene, answer, claim, record
from webhooks.models import Heartbeat

MODELS = sorted(admin.site._registry, key=lambda model: model._meta.label)


def staff(actor: Actor) -> Client:
    """A client that is logged in as this member, who may enter the admin."""
    User.objects.filter(pk=actor.user.pk).update(is_staff=True)
    return logged_in(actor.user)


def superuser() -> Client:
    """A client of a superuser who is a member of no organization."""
    return logged_in(User.objects.create_superuser("root@example.com", "secret of root"))


def logged_in(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def changelist(model: type[Model]) -> str:
    return reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist")


def page_of(row: Model) -> str:
    name = f"admin:{row._meta.app_label}_{row._meta.model_name}_change"
    return reverse(name, args=[row.pk])


def html(client: Client, address: str) -> str:
    """The page, which must open."""
    response = client.get(address)
    assert response.status_code == 200, f"{address}: {response.status_code}"
    return response.content.decode()


def act(client: Client, name: str, rows: Iterable[Model], **answers: Any) -> str:
    """Select rows and act: without answers the page that asks, with them what the person is told."""
    selected = list(rows)
    form = {"action": name, ACTION_CHECKBOX_NAME: [row.pk for row in selected]}
    address = changelist(type(selected[0]))
    if not answers:
        return client.post(address, {**form, "index": 0}).content.decode()
    return client.post(address, {**form, **answers}, follow=True).content.decode()


def fill(scene: Scene) -> None:
    """Rows in every table that an organization has."""
    scene.failed()
    scene.in_state("retracted")
    delivery = scene.send(scene.another_endpoint("event"))
    record(answer(claim(delivery), 503))


def fill_installation(user: User) -> None:
    """Rows in every table that the installation has."""
    now = timezone.now()
    Heartbeat.objects.create(cluster="cluster", host="host", beat_at=now)
    EmailAddress.objects.create(user=user, email=user.email)
    Schedule.objects.create(name="a schedule", func="some.function")
    OrmQ.objects.create(key="console", payload="not signed")
    for name, success in (("good", True), ("bad", False)):
        Task.objects.create(
            id=name, name=name, func="some.function", started=now, stopped=now, success=success
        )
