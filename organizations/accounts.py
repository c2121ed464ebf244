"""How people get in: by an account that an owner made, never by signing up."""

from __future__ import annotations

from allauth.account.adapter import DefaultAccountAdapter
from django.http import HttpRequest


class AccountAdapter(DefaultAccountAdapter):  # type: ignore[misc]
    """Login by email and password; nobody can make an account for himself."""

    def is_open_for_signup(self, request: HttpRequest) -> bool:
        return False
