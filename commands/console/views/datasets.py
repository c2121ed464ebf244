"""Datasets by experiment: armed or not, by whom and since when; arming and disarming them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

from django.http import Http404, HttpResponse
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_safe

from commands import datasets as service
from commands.console.forms import DatasetForm, ExperimentForm
from commands.models import Dataset, Experiment
from organizations.actors import Actor
from organizations.console.access import ConsoleRequest, confirmed_by_post, permitted
from organizations.console.fields import OnceForm, posted, status_of
from organizations.console.responses import done, live, page_or_sheet, revision_of, unchanged


@permitted("datasets:read")
@require_safe
def datasets(request: ConsoleRequest) -> HttpResponse:
    """Every experiment with its datasets."""
    experiments = list(
        Experiment.objects.filter(organization=request.actor.organization).order_by("name", "pk")
    )
    groups: dict[UUID, list[Dataset]] = {experiment.pk: [] for experiment in experiments}
    for dataset in _datasets(request.actor):
        groups[dataset.experiment_id].append(dataset)
    revision = revision_of(
        [(e.pk, e.name, [(d.pk, d.name, d.armed_at) for d in groups[e.pk]]) for e in experiments]
    )
    if answer := unchanged(request, revision):
        return answer
    context = {"groups": [(experiment, groups[experiment.pk]) for experiment in experiments]}
    return live(request, "datasets/list.html", "datasets/_list.html", context, revision)


def _datasets(actor: Actor) -> Any:
    return (
        Dataset.objects.filter(organization=actor.organization)
        .select_related("experiment", "endpoint", "armed_by")
        .order_by("name", "pk")
    )


@permitted("datasets:arm")
@confirmed_by_post
def arm(request: ConsoleRequest, pk: UUID) -> HttpResponse:
    """What armed means; then, by POST, the dataset is armed."""
    return _switch(request, pk, service.arm, "datasets/_arm.html", "Arm", "armed")


@permitted("datasets:arm")
@confirmed_by_post
def disarm(request: ConsoleRequest, pk: UUID) -> HttpResponse:
    """What disarming stops and what not; then, by POST, the dataset is disarmed."""
    return _switch(request, pk, service.disarm, "datasets/_disarm.html", "Disarm", "disarmed")


def _switch(
    request: ConsoleRequest,
    pk: UUID,
    act: Callable[[Actor, UUID], Dataset],
    sheet: str,
    verb: str,
    past: str,
) -> HttpResponse:
    dataset = _datasets(request.actor).filter(pk=pk).first()
    if dataset is None:
        raise Http404
    onward = _onward(request)
    if request.method != "POST":
        context = {"dataset": dataset, "title": f"{verb} {dataset.name}", "next": onward}
        return page_or_sheet(request, sheet, context)
    act(request.actor, pk)
    return done(request, reverse("datasets"), f"{dataset.name} is {past}.", onward)


def _onward(request: ConsoleRequest) -> str | None:
    """The confirmation that the user came from, to go on with; only of this console."""
    wanted = request.POST.get("next") or request.GET.get("next") or ""
    return wanted if url_has_allowed_host_and_scheme(wanted, {request.get_host()}) else None


@permitted("datasets:write")
@confirmed_by_post
def new_experiment(request: ConsoleRequest) -> HttpResponse:
    """A new experiment."""
    form = ExperimentForm(posted(request))
    return _create(
        request,
        form,
        "New experiment",
        lambda: service.create_experiment(request.actor, form.cleaned_data["name"]),
    )


@permitted("datasets:write")
@confirmed_by_post
def new_dataset(request: ConsoleRequest) -> HttpResponse:
    """A new dataset, not armed."""
    form = DatasetForm(
        request.actor.organization,
        posted(request),
        initial={"experiment": request.GET.get("experiment")},
    )

    def create() -> Any:
        wanted = form.cleaned_data
        return service.create_dataset(
            request.actor, wanted["experiment"], wanted["name"], wanted["endpoint"]
        )

    return _create(request, form, "New dataset", create)


def _create(
    request: ConsoleRequest, form: OnceForm, title: str, create: Callable[[], Any]
) -> HttpResponse:
    if not form.is_valid():
        context = {"form": form, "title": title}
        status = status_of(form)
        return page_or_sheet(request, "datasets/_new.html", context, status)
    page = reverse("datasets")
    if form.taken():
        return done(request, page, "This was submitted before.")
    return done(request, page, f"{create().name} was created.")
