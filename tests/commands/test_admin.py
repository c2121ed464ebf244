"""The admin's acts on commands and datasets, and what it lets people edit."""

from __future__ import annotations

import pytest

from commands.models import Command, CommandEvent, Dataset, Experiment
from commands.rules.states import State
from organizations.models import AuditEntry, Membership
from organizations.rules.roles import VIEWER
from tests.administration import act, changelist, html, page_of, staff, superuser
from tests.factories import Scene, fresh, new_scene

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("plain_static")]

WHY = "Wrong vehicle"


# --- retract ------------------------------------------------------------------------------------


def test_retracting_asks_first_and_says_what_it_cannot_recall(scene: Scene) -> None:
    command, _ = scene.on_the_wire()
    asked = act(staff(scene.operator), "retract", [command])
    assert "An attempt on the wire cannot be recalled" in asked
    assert f"{command.client_token}: queued, an attempt is on the wire" in asked
    assert fresh(command).state == State.QUEUED


def test_a_confirmed_retraction_is_made_and_on_record(scene: Scene) -> None:
    command = scene.dispatched()
    told = act(staff(scene.operator), "retract", [command], confirmed="True", reason=WHY)
    assert "1 retracted." in told
    command = fresh(command)
    assert command.state == State.RETRACTED
    assert command.retraction_reason == WHY
    entry = AuditEntry.objects.get(act="command.retract")
    assert (entry.user, entry.via, entry.address) == (scene.operator.user, "admin", "127.0.0.1")
    assert (entry.before, entry.after) == ({"state": "queued"}, {"state": "retracted"})


def test_a_retraction_without_a_reason_asks_again(scene: Scene) -> None:
    command = scene.issued()
    told = act(staff(scene.operator), "retract", [command], confirmed="True", reason=" ")
    assert "This field is required." in told
    assert fresh(command).state == State.LOGGED


def test_retracting_counts_what_came_of_each_command(scene: Scene) -> None:
    on_the_wire, _ = scene.on_the_wire()
    rows = [scene.issued(), on_the_wire, scene.in_state("retracted")]
    told = act(staff(scene.owner), "retract", rows, confirmed="True", reason=WHY)
    assert "1 retracted." in told
    assert "1 retracted with an attempt on the wire, which cannot be recalled" in told
    assert "1 retracted before." in told


def test_a_command_that_moved_on_since_the_page_was_shown_is_retracted_all_the_same(
    scene: Scene,
) -> None:
    command = scene.delivered()
    form = {"action": "retract", "_selected_action": command.pk, "confirmed": "True", "reason": WHY}
    address = f"{changelist(Command)}?state__exact=queued"
    staff(scene.operator).post(address, form)
    assert fresh(command).state == State.RETRACTED


def test_a_superuser_who_is_no_member_retracts_nothing(scene: Scene) -> None:
    command = scene.issued()
    told = act(superuser(), "retract", [command], confirmed="True", reason=WHY)
    assert "1 retracted" not in told
    assert fresh(command).state == State.LOGGED


def test_in_each_organization_the_role_there_decides(scene: Scene) -> None:
    elsewhere = new_scene("Another organization")
    Membership.objects.create(
        organization=elsewhere.organization, user=scene.owner.user, role=VIEWER
    )
    mine, theirs = scene.issued(), elsewhere.issued()
    told = act(staff(scene.owner), "retract", [mine, theirs], confirmed="True", reason=WHY)
    assert "1 retracted." in told
    assert "1 not permitted" in told
    assert (fresh(mine).state, fresh(theirs).state) == (State.RETRACTED, State.LOGGED)


def test_another_organizations_command_is_out_of_reach(scene: Scene) -> None:
    theirs = new_scene("Another organization").issued()
    act(staff(scene.owner), "retract", [theirs], confirmed="True", reason=WHY)
    assert fresh(theirs).state == State.LOGGED


def test_a_viewer_in_the_admin_is_offered_no_act(scene: Scene) -> None:
    scene.issued()
    shown = html(staff(scene.viewer), changelist(Command))
    assert 'value="retract"' not in shown


def test_nothing_is_retracted_without_a_post(scene: Scene) -> None:
    command = scene.issued()
    form = {"action": "retract", "_selected_action": str(command.pk), "confirmed": "True"}
    staff(scene.operator).get(changelist(Command), {**form, "reason": WHY})
    assert fresh(command).state == State.LOGGED


# --- what is shown ------------------------------------------------------------------------------


def test_a_command_leads_to_its_page_on_the_console(scene: Scene) -> None:
    command = scene.issued()
    client = staff(scene.owner)
    assert f'href="/commands/{command.pk}/"' in html(client, changelist(Command))
    assert f'href="/commands/{command.pk}/"' in html(client, page_of(command))


@pytest.mark.parametrize("role", ["superuser", "owner"])
def test_a_command_is_found_by_its_id_and_by_the_start_of_its_token(
    scene: Scene, role: str
) -> None:
    wanted, other = scene.issued("north-1"), scene.issued("south-1")
    client = superuser() if role == "superuser" else staff(scene.owner)
    for term in (str(wanted.pk), "north"):
        shown = html(client, f"{changelist(Command)}?q={term}")
        assert page_of(wanted) in shown
        assert page_of(other) not in shown


def test_commands_are_narrowed_to_a_state(scene: Scene) -> None:
    logged, queued = scene.issued(), scene.dispatched()
    shown = html(superuser(), f"{changelist(Command)}?state__exact=queued")
    assert page_of(queued) in shown
    assert page_of(logged) not in shown


def test_names_of_commands_are_inert(scene: Scene) -> None:
    command = scene.issued("<b>token", "<img src=x>\u202egpj")
    client = staff(scene.owner)
    for shown in (html(client, changelist(Command)), html(client, page_of(command))):
        assert "&lt;img src=x&gt;⟨U+202E⟩gpj" in shown
        assert "<img src=x>" not in shown
        assert "<b>token" not in shown


# --- datasets -----------------------------------------------------------------------------------


def test_datasets_are_disarmed_and_armed_by_acts_that_ask_first(scene: Scene) -> None:
    client = staff(scene.operator)
    assert "What was dispatched before goes on." in act(client, "disarm", [scene.dataset])
    assert Dataset.objects.get().armed
    assert "is not armed." in act(client, "disarm", [scene.dataset], confirmed="True")
    assert not Dataset.objects.get().armed
    assert "is armed." in act(client, "arm", [scene.dataset], confirmed="True")
    assert Dataset.objects.get().armed
    acts = AuditEntry.objects.filter(via="admin").order_by("pk").values_list("act", flat=True)
    assert list(acts) == ["dataset.disarm", "dataset.arm"]


def test_the_arming_switch_is_no_field_to_edit(scene: Scene) -> None:
    form = {"name": "Renamed", "endpoint": "", "armed": ""}
    staff(scene.owner).post(page_of(scene.dataset), form)
    dataset = Dataset.objects.get()
    assert (dataset.name, dataset.armed) == ("Renamed", True)
    entry = AuditEntry.objects.get(act="dataset.edit")
    assert (entry.before, entry.after) == ({"name": "Dataset"}, {"name": "Renamed"})


def test_an_edit_leaves_alone_what_it_does_not_change(scene: Scene) -> None:
    """Two people at once: one renames the dataset while another disarms it."""
    client = staff(scene.owner)
    html(client, page_of(scene.dataset))
    act(staff(scene.operator), "disarm", [scene.dataset], confirmed="True")
    client.post(page_of(scene.dataset), {"name": "Renamed", "endpoint": ""})
    dataset = Dataset.objects.get()
    assert (dataset.name, dataset.armed) == ("Renamed", False)


def test_a_new_dataset_belongs_where_its_experiment_belongs(scene: Scene) -> None:
    form = {"experiment": scene.experiment.pk, "name": "New", "endpoint": scene.endpoint.pk}
    staff(scene.owner).post(changelist(Dataset) + "add/", form)
    dataset = Dataset.objects.get(name="New")
    assert dataset.organization == scene.organization
    assert not dataset.armed
    assert AuditEntry.objects.get(act="dataset.create", via="admin").target_id == str(dataset.pk)


def test_a_dataset_takes_no_endpoint_of_another_organization(scene: Scene) -> None:
    other = new_scene("Another organization")
    client = staff(scene.owner)
    form = {"name": "Renamed", "endpoint": other.endpoint.pk}
    refused = client.post(page_of(scene.dataset), form).content.decode()
    assert "Select a valid choice." in refused
    Membership.objects.create(organization=other.organization, user=scene.owner.user, role="owner")
    refused = client.post(page_of(scene.dataset), form).content.decode()
    assert "The endpoint belongs to another organization." in refused


def test_a_dataset_takes_no_endpoint_without_commands(scene: Scene) -> None:
    form = {"name": "Renamed", "endpoint": scene.another_endpoint("event").pk}
    refused = staff(scene.owner).post(page_of(scene.dataset), form).content.decode()
    assert "The endpoint does not receive commands." in refused


def test_an_owner_makes_an_experiment_in_his_organization_alone(scene: Scene) -> None:
    client = staff(scene.owner)
    other = new_scene("Another organization").organization
    for organization in (other, scene.organization):
        form = {"organization": organization.pk, "name": "New"}
        client.post(changelist(Experiment) + "add/", form)
    assert Experiment.objects.get(name="New").organization == scene.organization
    assert AuditEntry.objects.filter(act="experiment.create", via="admin").count() == 1


# --- the timeline -------------------------------------------------------------------------------


def test_a_timeline_is_a_record(scene: Scene) -> None:
    command = scene.failed()
    client = staff(scene.owner)
    shown = html(client, f"{changelist(CommandEvent)}?command={command.pk}")
    assert "4 command events" in shown or "3 command events" in shown
    line = CommandEvent.objects.filter(command=command).first()
    assert line
    assert client.post(page_of(line), {"reason": "another"}).status_code == 403
