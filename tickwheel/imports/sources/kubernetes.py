"""CronJobs of Kubernetes: manifests in YAML, and what `kubectl get cronjobs -o json` prints."""

from collections.abc import Iterator, Mapping
from typing import Any

from tickwheel.imports.cron import parse
from tickwheel.imports.dialects import KUBERNETES
from tickwheel.imports.documents import Lined, line_of, plain, text_of
from tickwheel.imports.durations import go_interval
from tickwheel.imports.fields import Unreadable
from tickwheel.imports.found import Entry, Found, LeftOut, OfClock, OfInterval, Place, Rule
from tickwheel.imports.yaml_documents import read_any

_OVERLAPS = {"Allow": "allow", "Forbid": "forbid", "Replace": "replace"}
_CALLED = ("image", "command", "args")


def read_kubernetes(file: str, data: bytes) -> Iterator[Found]:
    """The CronJobs of a file, whatever else is in it."""
    for document in read_any(text_of(data)):
        items = document.get("items") if isinstance(document, dict) and "items" in document else [document]
        for item in items if isinstance(items, list) else []:
            if isinstance(item, dict) and item.get("kind") == "CronJob":
                yield _cron_job(Place(file, line_of(item)), item)


def _cron_job(place: Place, item: Mapping[str, Any]) -> Found:
    metadata, spec = _object(item, "metadata"), _object(item, "spec")
    name, namespace = str(metadata.get("name", "")), str(metadata.get("namespace") or "default")
    written = spec.get("schedule")
    try:
        _check(item, name, spec)
        rule, remarks = _rule(str(written), spec.get("timeZone"))
        fields, more = _fields(spec)
        return Entry(
            place=place,
            name=f"{namespace}.{name}",
            written=str(written),
            rule=rule,
            payload={"namespace": namespace, "cronjob": name, **_container(spec)},
            fields=fields,
            remarks=(*remarks, *more),
            is_suspended=spec.get("suspend") is True,
        )
    except Unreadable as problem:
        return LeftOut(place=place, name=f"{namespace}.{name}", written=str(written), reason=str(problem))


def _check(item: Mapping[str, Any], name: str, spec: Mapping[str, Any]) -> None:
    version = str(item.get("apiVersion", ""))
    if not version.startswith("batch/"):
        raise Unreadable(f"is of the API {version!r}, not of Kubernetes' batch")
    if not name:
        raise Unreadable("has no metadata.name")
    if not isinstance(spec.get("schedule"), str):
        raise Unreadable("has no spec.schedule that is a text: it is a patch, or of another kind")


def _rule(written: str, timezone: Any) -> tuple[Rule, tuple[str, ...]]:
    text, zone, remarks = written.strip(), timezone, ()
    if text.startswith(("TZ=", "CRON_TZ=")):
        head, _, text = text.partition(" ")
        zone = head.partition("=")[2]
        remarks = ("Kubernetes does not support a TZ in the schedule; it is read as spec.timeZone",)
    if text.startswith("@every "):
        interval = go_interval(text.removeprefix("@every ").strip())
        return OfInterval(interval=interval, begins="the creation of the CronJob"), remarks
    expression = parse(text, KUBERNETES)
    if zone is None:
        remarks += ("has no timeZone: there it is that of kube-controller-manager; here that of --timezone",)
    rule = OfClock(expression=expression, timezone=zone, gap=KUBERNETES.gap, fold=KUBERNETES.fold)
    return rule, remarks


def _fields(spec: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    # Of runs that were missed, Kubernetes starts the last:
    # https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/#starting-deadline
    fields: dict[str, Any] = {"misfire": "coalesce"}
    remarks: list[str] = []
    policy = spec.get("concurrencyPolicy", "Allow")
    if policy not in _OVERLAPS:
        raise Unreadable(f"has the concurrencyPolicy {policy!r}: known are {', '.join(_OVERLAPS)}")
    if policy != "Allow":
        fields["overlap"] = _OVERLAPS[policy]
    if policy == "Replace":
        remarks.append("Replace ends a running Job; here a call that is under way is not interrupted")
    deadline = spec.get("startingDeadlineSeconds")
    if isinstance(deadline, int) and not isinstance(deadline, bool):
        fields["max_lateness"] = deadline
    job = _object(_object(spec, "jobTemplate"), "spec")
    lost = [name for name in ("activeDeadlineSeconds", "backoffLimit") if name in job]
    lost += [name for name in ("completions", "parallelism") if job.get(name, 1) != 1]
    if lost:
        remarks.append(f"{', '.join(lost)} stay with what makes the Job: not carried over")
    return fields, remarks


def _container(spec: Mapping[str, Any]) -> dict[str, Any]:
    """What its only container runs; environments may hold secrets, and stay where they are."""
    pod = _object(_object(_object(_object(spec, "jobTemplate"), "spec"), "template"), "spec")
    containers = pod.get("containers")
    if not isinstance(containers, list) or len(containers) != 1 or not isinstance(containers[0], dict):
        return {}
    return {name: plain(containers[0][name]) for name in _CALLED if name in containers[0]}


def _object(value: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = value.get(name)
    return found if isinstance(found, dict) else Lined()
