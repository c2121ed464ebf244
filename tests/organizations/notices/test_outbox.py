"""What comes into the outbox, who takes it out, and that nothing is told twice."""

from __future__ import annotations

import pytest
from django.db import connection, transaction
from django.db.models.functions import Now
from django.test.utils import CaptureQueriesContext

from organizations.actors import Actor
from organizations.clock import database_now
from organizations.models import Membership, Notice, User
from organizations.notices import outbox
from organizations.notices.outbox import Mail
from organizations.rules import roles
from organizations.rules.notices import GIVE_UP_AFTER, Kind
from tests.factories import Scene, new_scene
from tests.organizations.notices.posting import (
    disabling,
    fact_for,
    gathered,
    left_behind,
    tell,
)
from tests.plain_sql import Connection, change, refused, truncate, undone

pytestmark = pytest.mark.django_db


def claimed() -> Mail:
    mail = outbox.claim()
    assert mail
    return mail


def another_owner(scene: Scene) -> User:
    user = User.objects.create_user("second-owner@example.com")
    Membership.objects.create(organization=scene.organization, user=user, role=roles.OWNER)
    return user


# --- telling ------------------------------------------------------------------------------------


def test_a_fact_is_told_once_however_often_it_is_tried(operator: Actor) -> None:
    fact = fact_for(operator)
    assert outbox.tell([fact]) == 1
    assert outbox.tell([fact]) == 0
    assert Notice.objects.get().recipient == operator.user


def test_every_owner_is_told_of_a_disabled_endpoint(scene: Scene) -> None:
    second = another_owner(scene)
    told = tell(disabling(scene.organization.pk))
    assert {notice.recipient for notice in told} == {scene.owner.user, second}


def test_who_left_or_may_not_sign_in_is_not_told(scene: Scene) -> None:
    elsewhere = new_scene("Another organization").operator
    stranger = fact_for(scene.operator)
    User.objects.filter(pk=another_owner(scene).pk).update(is_active=False)
    told = tell(
        disabling(scene.organization.pk),
        outbox.Fact(**{**vars(stranger), "recipient_id": elsewhere.user.pk}),
    )
    assert [notice.recipient for notice in told] == [scene.owner.user]


def test_a_hundred_facts_take_as_many_statements_as_one(operator: Actor) -> None:
    facts = [fact_for(operator) for _ in range(100)]
    with CaptureQueriesContext(connection) as captured:
        outbox.tell(facts)
    assert len(captured) == 1
    assert Notice.objects.count() == 100


def test_a_fact_that_is_rolled_back_is_told_to_nobody(operator: Actor) -> None:
    with transaction.atomic():
        outbox.tell([fact_for(operator)])
        transaction.set_rollback(True)
    assert not Notice.objects.exists()


# --- claiming -----------------------------------------------------------------------------------


def test_nothing_is_claimed_before_it_has_waited_for_company(operator: Actor) -> None:
    outbox.tell([fact_for(operator)])
    assert not outbox.anything_due()
    assert outbox.claim() is None
    gathered()
    assert outbox.anything_due()
    assert claimed().notices[0].tries == 1


def test_what_waits_for_one_person_and_of_one_kind_is_one_mail(scene: Scene) -> None:
    tell(*(fact_for(scene.operator) for _ in range(3)))
    tell(fact_for(scene.operator, Kind.COMMAND_FAILED), fact_for(scene.owner))
    outbox.tell([fact_for(scene.operator)])
    mails = [claimed(), claimed(), claimed()]
    assert outbox.claim() is None
    counts = {(mail.address, mail.kind): len(mail.notices) for mail in mails}
    assert counts == {
        # With the last one, which had only just come.
        (scene.operator.user.email, Kind.COMMAND_TIMED_OUT): 4,
        (scene.operator.user.email, Kind.COMMAND_FAILED): 1,
        (scene.owner.user.email, Kind.COMMAND_TIMED_OUT): 1,
    }


def test_organizations_are_not_mixed_in_a_mail(scene: Scene) -> None:
    other = new_scene("Another organization")
    Membership.objects.create(
        organization=other.organization, user=scene.operator.user, role=roles.OPERATOR
    )
    theirs = fact_for(scene.operator)
    tell(
        fact_for(scene.operator),
        outbox.Fact(**{**vars(theirs), "organization_id": other.organization.pk}),
    )
    names = {claimed().organization_name, claimed().organization_name}
    assert names == {"Test organization", "Another organization"}


def test_what_comes_while_a_mail_is_under_way_waits_for_the_next(operator: Actor) -> None:
    tell(fact_for(operator))
    under_way = claimed()
    tell(fact_for(operator))
    assert outbox.claim() is None
    outbox.record_failed(under_way, "refused", final=False)
    gathered()
    assert [told.tries for told in claimed().notices] == [2, 1]


def test_mails_of_one_kind_to_one_person_keep_a_distance(
    operator: Actor, monkeypatch: pytest.MonkeyPatch
) -> None:
    tell(fact_for(operator))
    outbox.record_sent(claimed(), "mail")
    later = tell(fact_for(operator), fact_for(operator))
    assert outbox.claim() is None
    monkeypatch.setattr(outbox, "SPACING_S", 0)
    assert [told.id for told in claimed().notices] == [notice.pk for notice in later]


def test_after_a_failed_try_everything_waits_for_the_next(operator: Actor) -> None:
    """Each newer fact would otherwise bring on another try at a server that is away."""
    tell(fact_for(operator))
    outbox.record_failed(claimed(), "refused", final=False)
    tell_at_once = fact_for(operator)
    outbox.tell([tell_at_once])
    Notice.objects.filter(fact=tell_at_once.name).update(next_try_at=Now())
    assert outbox.claim() is None
    gathered()
    assert len(claimed().notices) == 2


# --- recording ----------------------------------------------------------------------------------


def test_a_failed_try_is_followed_by_waits_that_grow(operator: Actor) -> None:
    [notice] = tell(fact_for(operator))
    waits = []
    for _ in range(7):
        gathered()
        outbox.record_failed(claimed(), "The mail server refused the connection.", final=False)
        notice.refresh_from_db()
        assert notice.next_try_at
        waits.append(round((notice.next_try_at - database_now()).total_seconds() / 10) * 10)
    assert waits == [10, 60, 300, 1800, 7200, 7200, 7200]
    assert notice.error == "The mail server refused the connection."
    assert notice.state == "waiting"


def test_after_three_days_of_failures_a_notice_is_given_up(operator: Actor) -> None:
    notice = Notice.objects.create(
        organization=operator.organization,
        recipient=operator.user,
        kind=Kind.COMMAND_FAILED,
        fact="long ago",
        subject_id=operator.user.pk,
        facts={},
        happened_at=database_now() - GIVE_UP_AFTER,
        next_try_at=Now(),
    )
    outbox.record_failed(claimed(), "refused", final=False)
    notice.refresh_from_db()
    assert (notice.state, notice.error) == ("gave_up", "refused")
    assert notice.settled_at


def test_a_permanent_refusal_gives_up_at_once(operator: Actor) -> None:
    [notice] = tell(fact_for(operator))
    outbox.record_failed(claimed(), "550 no such user", final=True)
    notice.refresh_from_db()
    assert (notice.state, notice.error, notice.next_try_at) == ("gave_up", "550 no such user", None)


def test_a_mail_whose_postman_died_is_sent_once_more(operator: Actor) -> None:
    tell(fact_for(operator))
    lost = claimed()
    assert outbox.claim() is None
    left_behind()
    assert outbox.anything_due()
    again = claimed()
    assert [told.id for told in again.notices] == [told.id for told in lost.notices]
    # The dead one comes back after all: it holds nothing any more.
    outbox.record_failed(lost, "too late", final=True)
    outbox.record_sent(again, "mail")
    notice = Notice.objects.get()
    assert (notice.state, notice.mail_id, notice.tries) == ("sent", again.id, 2)


# --- what nobody changes ------------------------------------------------------------------------


def test_a_settled_notice_never_changes(operator: Actor, sql: Connection) -> None:
    [sent] = tell(fact_for(operator))
    outbox.record_sent(claimed(), "mail")
    with refused(sql, "a row with settled_at never changes"):
        change(sql, "organizations_notice", sent.pk, error="x")


def test_what_was_told_never_changes_while_it_waits(operator: Actor, sql: Connection) -> None:
    [waiting] = tell(fact_for(operator))
    for column, value in (("facts", "{}"), ("fact", "x"), ("kind", "command_failed")):
        with refused(sql, "never change"):
            change(sql, "organizations_notice", waiting.pk, **{column: value})
    with undone(sql):
        assert change(sql, "organizations_notice", waiting.pk, tries=3) == 1


def test_a_notice_is_never_deleted(operator: Actor, sql: Connection) -> None:
    [notice] = tell(fact_for(operator))
    with refused(sql, "rows are never deleted"):
        sql.execute("DELETE FROM organizations_notice WHERE id = %s", [notice.pk])
    with refused(sql, "rows are never deleted"):
        truncate(sql, "organizations_notice")


def test_a_notice_waits_or_is_under_way_or_is_settled(operator: Actor, sql: Connection) -> None:
    [notice] = tell(fact_for(operator))
    for columns in ({"next_try_at": None}, {"lease_until": notice.next_try_at}, {"state": "sent"}):
        with refused(sql, "notice_waits_or_is_in_flight_or_settled"):
            change(sql, "organizations_notice", notice.pk, **columns)


def test_that_an_endpoint_was_disabled_cannot_be_muted(operator: Actor, sql: Connection) -> None:
    [membership] = Membership.objects.filter(user=operator.user)
    kinds = [Kind.ENDPOINT_DISABLED.value]
    with refused(sql, "membership_mutes_what_can_be_muted"):
        change(sql, "organizations_membership", membership.pk, muted_notices=kinds)
