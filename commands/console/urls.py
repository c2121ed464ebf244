"""Addresses of commands and datasets."""

from django.urls import path
from django.views.generic import RedirectView

from commands.console.views import acts, datasets, detail, issuing, listing, overview

urlpatterns = [
    path("", RedirectView.as_view(pattern_name="overview"), name="home"),
    path("overview/", overview.overview, name="overview"),
    path("commands/", listing.commands, name="commands"),
    path("commands/export/", listing.export_commands, name="export_commands"),
    path("commands/new/", issuing.issue, name="issue"),
    path("commands/new/check/", issuing.check_parameters, name="check_parameters"),
    path("commands/<uuid:pk>/", detail.command, name="command"),
    path("commands/<uuid:pk>/dispatch/", acts.dispatch, name="dispatch"),
    path("commands/<uuid:pk>/retract/", acts.retract, name="retract"),
    path("commands/<uuid:pk>/reissue/", acts.reissue, name="reissue"),
    path("datasets/", datasets.datasets, name="datasets"),
    path("datasets/new/", datasets.new_dataset, name="new_dataset"),
    path("datasets/<uuid:pk>/arm/", datasets.arm, name="arm"),
    path("datasets/<uuid:pk>/disarm/", datasets.disarm, name="disarm"),
    path("experiments/new/", datasets.new_experiment, name="new_experiment"),
]
