"""Every address of the API, tried by nobody, by another organization, and by a key without scopes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest
from django.urls import get_resolver
from django.urls.resolvers import URLPattern, URLResolver

from organizations import exact_json, keys
from tests.factories import Scene, new_scene
from tests.organizations.api.client import Api, problem

OPEN = {"schema", "docs"}


class Route(NamedTuple):
    """A method at an address, ids still in angle brackets, and the view class that answers."""

    method: str
    path: str
    view: Any


def routes(resolver: URLResolver | None = None, prefix: str = "/") -> Iterator[Route]:
    """Every operation of the API that needs a key."""
    for pattern in (resolver or get_resolver()).url_patterns:
        path = prefix + str(pattern.pattern)
        if isinstance(pattern, URLResolver):
            yield from routes(pattern, path)
        elif isinstance(pattern, URLPattern) and path.startswith("/api/"):
            name = path.removeprefix("/api/")
            if name not in OPEN:
                view = pattern.callback.view_class  # type: ignore[attr-defined]
                for method in ("get", "post", "patch", "put", "delete"):
                    if hasattr(view, method):
                        yield Route(method.upper(), name, view)


ROUTES = list(routes())
BODIES: dict[str, Callable[[Scene], dict[str, Any]]] = {
    # Bodies that name something of an organization, complete but for whose it is.
    "commands/issue": lambda scene: {
        "datasetId": str(scene.dataset.pk),
        "clientToken": "theirs",
        "name": "n",
        "parameters": {},
    },
    "commands/dispatch": lambda scene: {"commandId": str(scene.issued().pk)},
    "commands/ack": lambda scene: {"commandId": str(scene.delivered().pk), "outcome": "success"},
    "commands/retract": lambda scene: {"commandId": str(scene.issued().pk)},
    "datasets": lambda scene: {"experimentId": str(scene.experiment.pk), "name": "n"},
}


def filled(path: str, scene: Scene) -> str:
    """The address with ids of this organization."""
    ids: dict[str, Callable[[], Any]] = {
        "<str:command_id>": scene.issued,
        "<str:dataset_id>": lambda: scene.dataset,
        "<str:endpoint_id>": lambda: scene.endpoint,
        "<str:event_id>": scene.published,
    }
    for name, make in ids.items():
        if name in path:
            path = path.replace(name, str(make().pk))
    assert "<" not in path, f"say here which id {path} takes"
    return path


def call(api: Api, route: Route, scene: Scene) -> Any:
    """Call an operation with ids, in its address and its body, of this organization."""
    path = filled(route.path, scene)
    return ask(api, route, path, BODIES[path](scene) if path in BODIES else {})


def ask(api: Api, route: Route, path: str, body: Any = None) -> Any:
    match route.method:
        case "GET":
            return api.get(path)
        case "POST":
            return api.post(path, body)
        case method:
            return api.send(path, exact_json.dumps(body or {}), method=method)


def identified(candidates: list[Route]) -> list[Any]:
    return [pytest.param(one, id=f"{one.method} {one.path}") for one in candidates]


NAMES_A_THING = [
    route
    for route in ROUTES
    if "<" in route.path or (route.path in BODIES and route.method != "GET")
]


@pytest.mark.parametrize("route", identified(ROUTES))
def test_nobody_gets_in(scene: Scene, route: Route) -> None:
    problem(call(Api(), route, scene), 401, "missing_api_key")


@pytest.mark.parametrize("route", identified(ROUTES))
def test_a_key_without_the_scope_stays_out(scene: Scene, route: Route) -> None:
    _, text = keys.create_key(scene.organization, scene.owner.user, "nothing", [])

    told = problem(call(Api(text), route, scene), 403, "missing_scope")

    scope = getattr(route.view, route.method.lower()).scope
    assert scope in told["detail"]


@pytest.mark.parametrize("route", identified(NAMES_A_THING))
def test_what_another_organization_has_does_not_exist(scene: Scene, route: Route) -> None:
    stranger = Api.of(new_scene("Strangers"))

    problem(call(stranger, route, scene), 404, "not_found")


@pytest.mark.parametrize("route", identified(NAMES_A_THING))
def test_what_another_organization_has_answers_its_own_people(scene: Scene, route: Route) -> None:
    """The calls of the test above fail for whose they are and for nothing else."""
    assert call(Api.of(scene), route, scene).status_code < 300


@pytest.mark.parametrize(
    "given",
    [
        "00000000-0000-0000-0000-000000000000",
        "nonsense",
        "{00000000-0000-7000-8000-000000000000}",
        "urn:uuid:00000000-0000-7000-8000-000000000000",
        "%00",
        "é",
        "١" * 8 + "-0000-7000-8000-000000000000",
    ],
)
@pytest.mark.parametrize("route", identified([route for route in ROUTES if "<" in route.path]))
def test_what_is_no_id_does_not_exist(scene: Scene, route: Route, given: str) -> None:
    before, _, after = route.path.partition("<")
    path = before + given + after.partition(">")[2]

    problem(ask(Api.of(scene), route, path), 404, "not_found")


def test_lists_show_nothing_of_another_organization(scene: Scene) -> None:
    scene.delivered()
    theirs = new_scene("Strangers")
    stranger = Api.of(theirs)

    assert stranger.items("commands/list") == []
    assert stranger.items("webhooks/deliveries") == []
    for path, own in (
        ("datasets", theirs.dataset),
        ("experiments", theirs.experiment),
        ("webhooks/endpoints", theirs.endpoint),
    ):
        assert [row["id"] for row in stranger.items(path)] == [str(own.pk)]


def test_filters_by_another_organization_s_ids_find_nothing(scene: Scene) -> None:
    command = scene.delivered()
    assert command.delivery
    stranger = Api.of(new_scene("Strangers"))

    for name, value in (
        ("commandId", command.pk),
        ("endpointId", scene.endpoint.pk),
        ("eventId", command.delivery.event_id),
    ):
        assert stranger.items("webhooks/deliveries", **{name: str(value)}) == []
        assert len(Api.of(scene).items("webhooks/deliveries", **{name: str(value)})) == 1
    for name, value in (("experimentId", scene.experiment.pk), ("datasetId", scene.dataset.pk)):
        assert stranger.items("commands/list", **{name: str(value)}) == []
        assert len(Api.of(scene).items("commands/list", **{name: str(value)})) == 1
    assert stranger.items("datasets", experimentId=str(scene.experiment.pk)) == []
