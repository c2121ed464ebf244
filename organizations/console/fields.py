"""What every console form builds on."""

from __future__ import annotations

from typing import Any

from django import forms
from django.http import HttpRequest, QueryDict
from django.utils import timezone

from organizations import passwords
from organizations.console import once, zones
from organizations.models import User


def posted(request: HttpRequest) -> QueryDict | None:
    """What a form is bound to; a form that is only shown is bound to nothing."""
    return request.POST if request.method == "POST" else None


def status_of(form: forms.Form) -> int:
    """The status of a page that shows the form."""
    return 422 if form.errors else 200


class ConsoleForm(forms.Form):
    """A form whose fields tell a screen reader about their help and errors."""

    template_name = "_form_fields.html"

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **{"label_suffix": "", **kwargs})


class PeriodForm(ConsoleForm):
    """A time from and a time before which something was done, as browsers write them."""

    CLOCK_FORMATS = ("%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S")

    since = forms.DateTimeField(required=False, input_formats=CLOCK_FORMATS)
    until = forms.DateTimeField(required=False, input_formats=CLOCK_FORMATS)
    # The time zone of the two; UTC unless it is said.
    zone = forms.CharField(required=False)

    def full_clean(self) -> None:
        with timezone.override(zones.named(self.data.get("zone", ""))):
            super().full_clean()


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
    """Who hands out power shows that it is really them; ``asked_since`` says which power."""

    asked_since = "this hands out access"
    password = forms.CharField(
        label="Your password",
        max_length=1000,
        strip=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "current-password"}),
    )

    def __init__(self, user: User, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._user = user
        self.fields["password"].help_text = f"Asked again, since {self.asked_since}."
        # Last, whatever fields come with it.
        self.order_fields([name for name in self.fields if name != "password"])

    def clean_password(self) -> None:
        try:
            passwords.check_form(self._user, self.cleaned_data["password"])
        except forms.ValidationError:
            self.begin_at("password")
            raise

    def begin_at(self, wanted: str) -> None:
        """Have whoever opens the form write there first."""
        for name, field in self.fields.items():
            field.widget.attrs["autofocus"] = name == wanted
