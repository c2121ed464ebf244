"""How people get in: by an account that an owner made, never by signing up."""

from __future__ import annotations

from allauth.account import app_settings
from allauth.account.adapter import DefaultAccountAdapter
from allauth.account.utils import user_pk_to_url_str
from django.conf import settings
from django.http import HttpRequest
from django.urls import reverse

from organizations.models import User


class AccountAdapter(DefaultAccountAdapter):  # type: ignore[misc]
    """Login by email and password; nobody can make an account for himself."""

    def is_open_for_signup(self, request: HttpRequest) -> bool:
        return False


def way_in(user: User) -> str:
    """The address at which this person gets in: the login, or where a new account chooses its password.

    That one is a secret: it works once, for ``PASSWORD_RESET_TIMEOUT``. It follows from the account and the
    server's key, so nothing has to be stored to send it, and a used one leads nowhere.
    """
    if user.has_usable_password():
        return f"{settings.CONSOLE_URL}{reverse('account_login')}"
    token = app_settings.PASSWORD_RESET_TOKEN_GENERATOR().make_token(user)
    place = {"uidb36": user_pk_to_url_str(user), "key": token}
    return f"{settings.CONSOLE_URL}{reverse('account_reset_password_from_key', kwargs=place)}"
