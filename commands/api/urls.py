"""Addresses of commands, experiments and datasets under /api/."""

from django.urls import path

from commands.api import commands, datasets

urlpatterns = [
    path("commands/issue", commands.IssueView.as_view()),
    path("commands/dispatch", commands.DispatchView.as_view()),
    path("commands/ack", commands.AckView.as_view()),
    path("commands/retract", commands.RetractView.as_view()),
    path("commands/list", commands.CommandListView.as_view()),
    path("commands/<str:command_id>", commands.CommandView.as_view()),
    path("experiments", datasets.ExperimentListView.as_view()),
    path("datasets", datasets.DatasetListView.as_view()),
    path("datasets/<str:dataset_id>/arm", datasets.ArmDatasetView.as_view()),
    path("datasets/<str:dataset_id>/disarm", datasets.DisarmDatasetView.as_view()),
]
