"""Form fields that every console form builds on."""

from __future__ import annotations

from typing import Any

from django import forms

from organizations import passwords
from organizations.console import once
from organizations.models import User


class ConsoleForm(forms.Form):
    """A form whose fields tell a screen reader about their help and errors."""

    template_name = "_form_fields.html"

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **{"label_suffix": "", **kwargs})


class OnceForm(ConsoleForm):
    """A form that does its work once, however often it is submitted; see ``once``."""

    token = forms.CharField(widget=forms.HiddenInput, max_length=64)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        kwargs["initial"] = {"token": once.new_token(), **(kwargs.get("initial") or {})}
        super().__init__(*args, **kwargs)

    def taken(self) -> bool:
        """Whether somebody came with this form before. Call it once, when it is valid."""
        return not once.take(self.cleaned_data["token"])


class PasswordForm(ConsoleForm):
    """Who hands out power shows that it is really them."""

    password = forms.CharField(
        label="Your password",
        help_text="Asked again, since this hands out access.",
        max_length=1000,
        strip=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "current-password"}),
    )

    def __init__(self, user: User, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._user = user
        # Last, whatever fields come with it.
        self.order_fields([name for name in self.fields if name != "password"])

    def clean_password(self) -> None:
        try:
            passwords.check_form(self._user, self.cleaned_data["password"])
        except forms.ValidationError:
            for field in self.fields.values():
                field.widget.attrs.pop("autofocus", None)
            self.fields["password"].widget.attrs["autofocus"] = True
            raise
