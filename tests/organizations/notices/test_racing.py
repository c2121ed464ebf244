"""Recorders and postmen at the same time, with real connections."""

from __future__ import annotations

import functools

import pytest
from django.core import mail as django_mail
from pytest_django import Settings

from organizations.models import Notice
from organizations.notices import outbox
from tests import factories
from tests.factories import Scene, new_scene, record
from tests.mail_sink import MailSink, use
from tests.organizations.notices.posting import fact_for, gathered, post, tell
from tests.racing import race, results
from webhooks.engine import claims
from webhooks.models import Endpoint

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def scene() -> Scene:
    return new_scene()


def test_eight_recorders_of_twenty_failures_tell_each_owner_once(
    scene: Scene, settings: Settings
) -> None:
    settings.ENDPOINT_UNPROVEN_IN_FLIGHT = 100
    Endpoint.objects.filter(pk=scene.endpoint.pk).update(max_in_flight=100)
    for _ in range(24):
        scene.send()
    failures = [factories.answer(one, 503) for one in claims.claim(24, factories.WORKER)]

    results(race(*[functools.partial(record, *failures[n::8]) for n in range(8)]))

    [notice] = Notice.objects.all()
    assert (notice.kind, notice.recipient) == ("endpoint_disabled", scene.owner.user)
    assert notice.subject_id == scene.endpoint.pk


def test_eight_who_tell_of_one_fact_make_one_notice(scene: Scene) -> None:
    fact = fact_for(scene.operator)
    told = results(race(*[functools.partial(outbox.tell, [fact])] * 8))
    assert sorted(count or 0 for count in told) == [0] * 7 + [1]
    assert Notice.objects.count() == 1


def test_postmen_who_race_send_each_mail_once(scene: Scene, settings: Settings) -> None:
    people = [scene.owner, scene.operator, scene.viewer]
    tell(*(fact_for(person) for person in people for _ in range(5)))
    with MailSink() as sink:
        use(settings, sink.port)
        tried = results(race(*[post] * 6))
    assert sum(count or 0 for count in tried) == 3
    assert sorted(sink.recipients) == sorted(person.user.email for person in people)
    assert not Notice.objects.exclude(state="sent").exists()


def test_facts_that_come_while_mails_go_out_are_all_told_once(scene: Scene) -> None:
    """Whatever the postmen take meanwhile: each notice ends in one mail."""

    def tell_ten() -> int:
        return sum(outbox.tell([fact_for(scene.operator)]) for _ in range(10))

    told = results(race(*[tell_ten] * 4, *[post] * 2))
    gathered()
    post()
    assert sum(count or 0 for count in told[:4]) == 40
    assert Notice.objects.filter(state="sent").count() == 40
    assert len(django_mail.outbox) == 1
