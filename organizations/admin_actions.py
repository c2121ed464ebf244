"""Acts on selected rows that ask before they do: what will happen, what cannot be undone, and why.

An action calls ``confirm``, which answers with a page until the person has confirmed, and then with the
rows that the page showed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from django import forms
from django.contrib import messages
from django.contrib.admin import helpers
from django.db import models
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse

from organizations import passwords
from organizations.models import User
from organizations.tenant_admin import ON_A_PAGE, TenantAdmin, capped, person

Row = TypeVar("Row", bound=models.Model)

# Rows that one action takes at most: about what a person can check by eye, and each is a transaction
# of its own.
MOST_ROWS = 200


@dataclass(frozen=True)
class Question(Generic[Row]):
    """What a confirmation page asks. ``describe`` says of a row what decides."""

    title: str
    consequences: tuple[str, ...]
    button: str
    describe: Callable[[Row], str]
    asks_reason: bool = False
    asks_password: bool = False


@dataclass(frozen=True)
class Confirmed(Generic[Row]):
    """What the person confirmed, and why."""

    rows: list[Row]
    reason: str


class ConfirmationForm(forms.Form):
    """That the person confirms, with a reason where one is asked for."""

    confirmed = forms.BooleanField(widget=forms.HiddenInput, initial=True)
    reason = forms.CharField(
        max_length=200,
        help_text="Kept on record and shown wherever somebody asks what happened.",
    )

    password = forms.CharField(
        label="Your password",
        max_length=1000,
        strip=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "current-password"}),
    )

    def __init__(self, question: Question[Any], user: User, *args: Any) -> None:
        super().__init__(*args)
        self._user = user
        if not question.asks_reason:
            del self.fields["reason"]
        if not question.asks_password:
            del self.fields["password"]

    def clean_password(self) -> None:
        passwords.check_form(self._user, self.cleaned_data["password"])


def confirm(
    model_admin: TenantAdmin[Row], request: HttpRequest, question: Question[Row]
) -> Confirmed[Row] | HttpResponse:
    """The confirmed rows, or the answer to give instead of acting."""
    rows = _selected(model_admin, request)
    if len(rows) > MOST_ROWS:
        model_admin.message_user(
            request, f"Select at most {MOST_ROWS} rows at a time.", messages.ERROR
        )
        return HttpResponseRedirect(request.get_full_path())
    answer = request.POST if "confirmed" in request.POST else None
    form = ConfirmationForm(question, person(request), answer)
    if form.is_valid():
        return Confirmed(rows, form.cleaned_data.get("reason", ""))
    return TemplateResponse(
        request, "admin/confirm_action.html", _context(model_admin, request, question, rows, form)
    )


def _selected(model_admin: TenantAdmin[Row], request: HttpRequest) -> list[Row]:
    """The rows by id, past the list's filters: one that left a filter's state meanwhile is still meant."""
    ids = request.POST.getlist(helpers.ACTION_CHECKBOX_NAME)
    rows = model_admin.get_queryset(request).filter(pk__in=ids[: MOST_ROWS + 1])
    related = model_admin.list_select_related
    assert not isinstance(related, bool)
    return list(rows.select_related(*related).order_by("pk"))


def _context(
    model_admin: TenantAdmin[Row],
    request: HttpRequest,
    question: Question[Row],
    rows: list[Row],
    form: ConfirmationForm,
) -> dict[str, Any]:
    return {
        **model_admin.admin_site.each_context(request),
        "title": question.title,
        "question": question,
        "rows": [(row.pk, capped(question.describe(row), ON_A_PAGE)) for row in rows],
        "form": form,
        "opts": model_admin.opts,
        "action": request.POST.get("action", ""),
        "action_checkbox_name": helpers.ACTION_CHECKBOX_NAME,
    }
