"""Experiments and datasets: listed, created, armed, disarmed."""

from __future__ import annotations

from http import HTTPStatus

from rest_framework.request import Request
from rest_framework.response import Response

from commands import datasets
from commands.api.serializers import (
    DatasetQuery,
    DatasetSerializer,
    ExperimentSerializer,
    NewDatasetInput,
    NewExperimentInput,
)
from commands.models import Dataset, Experiment
from organizations.api import paging
from organizations.api.inputs import Nothing
from organizations.api.openapi import operation
from organizations.api.paging import PageQuery, page_of
from organizations.api.views import ApiView, id_of
from webhooks.models import Endpoint


class ExperimentListView(ApiView):
    @operation(
        "listExperiments",
        "datasets:read",
        "The organization's experiments, newest first",
        {HTTPStatus.OK: page_of(ExperimentSerializer, "Experiment")},
        query=PageQuery,
    )
    def get(self, request: Request) -> Response:
        rows = paging.newest_first(Experiment.objects.filter(organization=self.actor.organization))
        page = paging.read("experiments", self.actor, self.query(PageQuery), rows)
        return page.response(ExperimentSerializer)

    @operation(
        "createExperiment",
        "datasets:write",
        "Create an experiment",
        {HTTPStatus.CREATED: ExperimentSerializer},
        body=NewExperimentInput,
    )
    def post(self, request: Request) -> Response:
        asked = self.body(NewExperimentInput)
        experiment = datasets.create_experiment(self.actor, asked["name"])
        return Response(ExperimentSerializer(experiment).data, HTTPStatus.CREATED)


class DatasetListView(ApiView):
    @operation(
        "listDatasets",
        "datasets:read",
        "The organization's datasets, newest first",
        {HTTPStatus.OK: page_of(DatasetSerializer, "Dataset")},
        query=DatasetQuery,
    )
    def get(self, request: Request) -> Response:
        asked = self.query(DatasetQuery)
        rows = Dataset.objects.filter(organization=self.actor.organization)
        if "experiment_id" in asked:
            rows = rows.filter(experiment_id=asked["experiment_id"])
        fetch = paging.newest_first(rows.select_related("armed_by"))
        page = paging.read("datasets", self.actor, asked, fetch)
        return page.response(DatasetSerializer)

    @operation(
        "createDataset",
        "datasets:write",
        "Create a dataset, not armed",
        {HTTPStatus.CREATED: DatasetSerializer},
        body=NewDatasetInput,
        problems=[HTTPStatus.NOT_FOUND],
    )
    def post(self, request: Request) -> Response:
        asked = self.body(NewDatasetInput)
        own = {"organization": self.actor.organization}
        experiment = Experiment.objects.get(pk=id_of(asked["experiment_id"]), **own)
        named = asked["endpoint_id"]
        endpoint = Endpoint.objects.get(pk=id_of(named), **own) if named is not None else None
        dataset = datasets.create_dataset(self.actor, experiment, asked["name"], endpoint)
        return Response(DatasetSerializer(dataset).data, HTTPStatus.CREATED)


class ArmDatasetView(ApiView):
    @operation(
        "armDataset",
        "datasets:arm",
        "Allow dispatches from a dataset",
        {HTTPStatus.OK: DatasetSerializer},
        body=Nothing,
        problems=[HTTPStatus.NOT_FOUND],
    )
    def post(self, request: Request, dataset_id: str) -> Response:
        self.body(Nothing)
        return Response(DatasetSerializer(datasets.arm(self.actor, id_of(dataset_id))).data)


class DisarmDatasetView(ApiView):
    @operation(
        "disarmDataset",
        "datasets:arm",
        "Refuse dispatches from a dataset; what was queued before goes on",
        {HTTPStatus.OK: DatasetSerializer},
        body=Nothing,
        problems=[HTTPStatus.NOT_FOUND],
    )
    def post(self, request: Request, dataset_id: str) -> Response:
        self.body(Nothing)
        return Response(DatasetSerializer(datasets.disarm(self.actor, id_of(dataset_id))).data)
