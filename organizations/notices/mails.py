"""From the notices of one mail to the message that is sent: text, and the same as simple HTML."""

from __future__ import annotations

import hashlib
from email.utils import formataddr
from typing import Final
from urllib.parse import urlsplit
from uuid import UUID

from django.conf import settings
from django.core.mail import EmailMultiAlternatives
from django.template.loader import render_to_string
from django.urls import reverse

from organizations import accounts
from organizations.models import User
from organizations.notices.outbox import Mail
from organizations.rules.letters import Letter, compose
from organizations.rules.notices import Kind

# The addresses of what a notice is about: its own page, if it has one, and the list of its kind.
PAGES: Final = {
    Kind.MEMBER_ADDED: ("", "home"),
    Kind.ENDPOINT_DISABLED: ("endpoint", "endpoints"),
    Kind.COMMAND_TIMED_OUT: ("command", "commands"),
    Kind.COMMAND_FAILED: ("command", "commands"),
    Kind.COMMAND_NACKED: ("command", "commands"),
}


def page_of(kind: Kind, subject_id: UUID) -> str:
    """The path of the endpoint's or command's page; empty for what has none."""
    page = PAGES[kind][0]
    return reverse(page, args=[subject_id]) if page else ""


def list_of(kind: Kind, letter: Letter) -> str:
    """The path of the list that holds everything of this kind."""
    return reverse(PAGES[kind][1]) + (f"?{letter.list_query}" if letter.list_query else "")


def message_of(mail: Mail) -> EmailMultiAlternatives:
    """The message, ready to be sent. Whatever somebody else wrote is inert in each part of it."""
    facts = [(told.subject_id, told.content) for told in mail.notices]
    letter = compose(mail.kind, mail.organization_name, facts)
    context = {
        "letter": letter,
        "items": [(item, _way_to(mail.kind, item.subject_id)) for item in letter.items],
        "list_url": _absolute(list_of(mail.kind, letter)),
        "notices_url": _absolute(reverse("notices")),
    }
    message = EmailMultiAlternatives(
        subject=letter.subject,
        body=render_to_string("notices/mail.txt", context),
        to=[formataddr(("", mail.address))],
        headers={"Message-ID": _message_id(mail), "Auto-Submitted": "auto-generated"},
    )
    message.attach_alternative(render_to_string("notices/mail.html", context), "text/html")
    return message


def _way_to(kind: Kind, subject_id: UUID) -> str:
    """The address that an item of the mail leads to. The way in is made here and stands nowhere else: what
    the outbox keeps, others may read.
    """
    if kind == Kind.MEMBER_ADDED:
        return accounts.way_in(User.objects.get(pk=subject_id))
    return _absolute(page_of(kind, subject_id))


def _absolute(path: str) -> str:
    return f"{settings.CONSOLE_URL}{path}"


def _message_id(mail: Mail) -> str:
    """Follows from the notices: a mail that is sent once more, because nobody knows whether it arrived,
    is the same mail to a program that drops doubles.
    """
    notices = ",".join(str(told.id) for told in mail.notices)
    host = urlsplit(settings.CONSOLE_URL).hostname or ""
    digest = hashlib.blake2s(notices.encode(), digest_size=12).hexdigest()
    return f"<notice.{digest}@{host if ':' not in host else 'localhost'}>"
