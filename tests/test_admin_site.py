"""The admin as a whole: who gets in, what he sees, and what nobody can do there."""

from __future__ import annotations

import re
from urllib.parse import unquote

import pytest
from django.apps import apps
from django.contrib import admin
from django.db import connection
from django.db.models import Model
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from commands.models import Command, CommandEvent
from organizations import tenant_admin
from organizations.models import ApiKey, AuditEntry, Membership, Organization, User
from organizations.tenant_admin import InstallationAdmin, RecordAdmin, TenantAdmin
from tests.administration import (
    MODELS,
    changelist,
    fill,
    fill_installation,
    html,
    logged_in,
    page_of,
    staff,
    superuser,
)
from tests.factories import Scene, new_scene
from webhooks.models import Attempt, Delivery, Endpoint, EndpointSecret, Event

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("plain_static")]

every_model = pytest.mark.parametrize("model", MODELS, ids=lambda model: model._meta.label)
TENANT_MODELS = [m for m in MODELS if isinstance(admin.site.get_model_admin(m), TenantAdmin)]
every_tenant_model = pytest.mark.parametrize(
    "model", TENANT_MODELS, ids=lambda model: model._meta.label
)
# Lists that grow with the work done.
BIG = [Command, CommandEvent, Delivery, Attempt, Event, AuditEntry]


def a_row_in(model: type[Model]) -> Model:
    row = model._default_manager.first()
    assert row, f"tests.administration fills no {model._meta.label}"
    return row


# --- who gets in --------------------------------------------------------------------------------


@every_model
def test_every_page_opens_for_a_superuser(scene: Scene, model: type[Model]) -> None:
    fill(scene)
    fill_installation(scene.owner.user)
    client = superuser()
    html(client, changelist(model))
    html(client, page_of(a_row_in(model)))


@every_tenant_model
def test_every_page_of_an_organization_opens_for_its_owner(
    scene: Scene, model: type[Model]
) -> None:
    fill(scene)
    client = staff(scene.owner)
    html(client, changelist(model))
    html(client, page_of(a_row_in(model)))


@every_tenant_model
def test_an_operator_sees_all_but_the_audit_trail(scene: Scene, model: type[Model]) -> None:
    fill(scene)
    client = staff(scene.operator)
    if model is AuditEntry:
        assert client.get(changelist(model)).status_code == 403
    else:
        html(client, changelist(model))
        html(client, page_of(a_row_in(model)))


@every_model
def test_whoever_is_no_staff_is_refused(scene: Scene, model: type[Model]) -> None:
    client = logged_in(scene.viewer.user)
    assert client.get(changelist(model), follow=True).status_code == 403


def test_the_installation_is_shown_to_superusers_alone(scene: Scene) -> None:
    client = staff(scene.owner)
    for model in set(MODELS) - set(TENANT_MODELS):
        assert isinstance(admin.site.get_model_admin(model), InstallationAdmin)
        assert client.get(changelist(model)).status_code == 403


def test_a_stranger_is_sent_to_the_login_and_brought_back(client: Client) -> None:
    response = client.get(changelist(Command), follow=True)
    login, _ = response.redirect_chain[-1]
    assert unquote(login) == f"{reverse('account_login')}?next={changelist(Command)}"


def test_a_password_is_changed_where_people_log_in(scene: Scene) -> None:
    response = staff(scene.owner).get(reverse("admin:password_change"))
    assert response.headers["Location"] == reverse("account_change_password")


# --- one organization and the other -------------------------------------------------------------


@every_tenant_model
def test_rows_of_another_organization_are_not_there(scene: Scene, model: type[Model]) -> None:
    fill(scene)
    theirs = list(model._default_manager.all())
    client = staff(new_scene("Another organization").owner)
    shown = html(client, changelist(model))
    for row in theirs:
        assert f'value="{row.pk}" class="action-select"' not in shown
        assert page_of(row) not in shown
        assert client.get(page_of(row)).status_code == 404


def test_choices_are_limited_to_the_own_organization(scene: Scene) -> None:
    other = new_scene("Another organization")
    client = staff(other.owner)
    parameters = {
        "app_label": "commands",
        "model_name": "dataset",
        "field_name": "experiment",
        "term": "",
    }
    found = client.get(reverse("admin:autocomplete"), parameters).json()["results"]
    assert [choice["id"] for choice in found] == [str(other.experiment.pk)]


def test_a_list_is_narrowed_to_one_organization(scene: Scene) -> None:
    mine, other = scene.issued(), new_scene("Another organization").issued()
    shown = html(superuser(), f"{changelist(Command)}?organization={mine.organization_id}")
    assert str(mine.pk) in shown
    assert str(other.pk) not in shown


def test_an_unknown_organization_in_the_address_narrows_nothing_open(scene: Scene) -> None:
    new_scene("Another organization")
    shown = html(superuser(), f"{changelist(Command)}?organization=none")
    assert "0 commands" in shown


# --- what nobody can do -------------------------------------------------------------------------


@every_model
def test_nothing_is_ever_deleted(scene: Scene, model: type[Model]) -> None:
    fill(scene)
    fill_installation(scene.owner.user)
    client = superuser()
    row = a_row_in(model)
    delete = page_of(row).removesuffix("change/") + "delete/"
    assert client.get(delete).status_code == 403
    assert client.post(delete, {"post": "yes"}).status_code == 403
    assert "delete_selected" not in html(client, changelist(model))


MADE_HERE = {"Organization", "User", "Membership"}


@every_model
def test_a_superuser_adds_only_what_sets_up_an_organization(model: type[Model]) -> None:
    response = superuser().get(changelist(model) + "add/")
    assert response.status_code == (200 if model.__name__ in MADE_HERE else 403)


@every_tenant_model
def test_an_owner_adds_only_what_he_runs(scene: Scene, model: type[Model]) -> None:
    response = staff(scene.owner).get(changelist(model) + "add/")
    allowed = model.__name__ in {"Membership", "Experiment", "Dataset"}
    assert response.status_code == (200 if allowed else 403)


@every_tenant_model
def test_an_operator_edits_nothing(scene: Scene, model: type[Model]) -> None:
    fill(scene)
    client = staff(scene.operator)
    assert client.get(changelist(model) + "add/").status_code == 403
    refused = 404 if model is AuditEntry else 403
    assert client.post(page_of(a_row_in(model)), {"name": "another"}).status_code == refused


def test_every_model_is_in_the_admin_by_the_rules_of_the_house() -> None:
    strangers = [
        model._meta.label
        for model, model_admin in admin.site._registry.items()
        if not isinstance(model_admin, RecordAdmin)
    ]
    assert not strangers, (
        f"{strangers}: a package registered these with its own rules. Unregister them, and register"
        " what people need as a TenantAdmin or an InstallationAdmin."
    )
    for app in ("organizations", "webhooks", "commands"):
        assert set(apps.get_app_config(app).get_models()) <= set(MODELS)


# --- secrets ------------------------------------------------------------------------------------


@every_model
def test_no_page_holds_a_secret(scene: Scene, model: type[Model]) -> None:
    fill(scene)
    fill_installation(scene.owner.user)
    secrets = [
        *EndpointSecret.objects.values_list("ciphertext", flat=True),
        *ApiKey.objects.values_list("digest", flat=True),
        *User.objects.values_list("password", flat=True),
        scene.provisioned.members["owner"].api_key,
    ]
    client = superuser()
    pages = [html(client, changelist(model))]
    pages += [html(client, page_of(row)) for row in model._default_manager.all()]
    assert not [secret for secret in secrets for page in pages if secret in page]


@pytest.mark.parametrize(
    ("model", "lookup"),
    [
        (ApiKey, "digest__startswith"),
        (EndpointSecret, "ciphertext__startswith"),
        (User, "password__startswith"),
        (Membership, "user__password__startswith"),
        (Attempt, "endpoint__secrets__ciphertext__startswith"),
    ],
)
def test_no_secret_is_guessed_by_filters(scene: Scene, model: type[Model], lookup: str) -> None:
    assert staff(scene.owner).get(changelist(model), {lookup: "a"}).status_code == 400


# --- pages --------------------------------------------------------------------------------------


@every_model
def test_no_page_breaks_the_content_security_policy(scene: Scene, model: type[Model]) -> None:
    fill(scene)
    fill_installation(scene.owner.user)
    client = superuser()
    for address in (changelist(model), page_of(a_row_in(model))):
        shown = html(client, address)
        assert not re.findall(r"<script(?![^>]* src=)[^>]*>|<style| style=| on[a-z]+=\"", shown)
    response = client.get(changelist(model))
    assert "default-src 'none'" in response.headers["Content-Security-Policy"]


def queries_of(client: Client, address: str) -> list[str]:
    html(client, address)  # what is read once and kept
    with CaptureQueriesContext(connection) as captured:
        html(client, address)
    return [query["sql"] for query in captured]


@pytest.mark.parametrize("model", [*BIG, Endpoint], ids=lambda model: model._meta.label)
@pytest.mark.parametrize("role", ["superuser", "owner"])
def test_a_list_takes_as_many_queries_for_30_rows_as_for_3(
    scene: Scene, model: type[Model], role: str
) -> None:
    client = superuser() if role == "superuser" else staff(scene.owner)
    for _ in range(3):
        scene.another_endpoint()
        scene.delivered()
    few = queries_of(client, changelist(model))
    for _ in range(27):
        scene.another_endpoint()
        scene.delivered()
    many = queries_of(client, changelist(model))
    assert len(many) == len(few), "\n".join(many)


@pytest.mark.parametrize("model", BIG, ids=lambda model: model._meta.label)
def test_a_big_list_counts_no_further_than_it_pages(
    scene: Scene, model: type[Model], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tenant_admin, "COUNTED", 2)
    for _ in range(3):
        scene.failed()
    client = superuser()
    assert "The first 2 " in html(client, changelist(model))
    counts = [sql for sql in queries_of(client, changelist(model)) if "COUNT(" in sql]
    assert counts
    assert all("LIMIT 3" in sql for sql in counts)


@pytest.mark.parametrize("model", BIG, ids=lambda model: model._meta.label)
def test_a_big_list_keeps_the_order_of_its_index(scene: Scene, model: type[Model]) -> None:
    fill(scene)
    table = model._meta.db_table
    for sql in queries_of(superuser(), f"{changelist(model)}?o=2"):
        if f'FROM "{table}"' in sql and "COUNT(" not in sql:
            assert f'ORDER BY "{table}"."id" DESC' in sql


def test_an_organization_leads_to_its_lists(scene: Scene) -> None:
    shown = html(superuser(), page_of(Organization.objects.get()))
    assert f"{changelist(Command)}?organization={scene.organization.pk}" in shown
