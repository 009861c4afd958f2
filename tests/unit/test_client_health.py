"""The health of a stage as the client asks for it and reads it, against a real server."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.api_server import Answer, ApiServer
from tests.unit.test_client_tenants import a_client
from tickwheel.client.breakers import Breaker
from tickwheel.client.health import ClassHealth, Listed, ShardHealth, ShardsHealth, SweeperHealth, UnservedTenant
from tickwheel.client.pulse import FIGURES, Lag, Standout
from tickwheel.client.words import BreakerState, Priority, TenantStatus
from tickwheel.errors import ApiProblem, Unreachable

AT = "2030-01-31T12:00:00.000Z"
LAST_MINUTE = "2030-01-31T11:59:00.000Z"
NOON = datetime(2030, 1, 31, 12, tzinfo=UTC)


def class_json(priority: str, **changes: Any) -> dict[str, Any]:
    return {
        "priority": priority,
        "depth": 1_234,
        "waiting": 17,
        "budget": 50_000,
        "lag_seconds": 0,
        "is_shed": False,
        "oldest_bucket_at": "2030-01-31T12:02:00.000Z",
        "age_seconds": 0,
        **changes,
    }


def lag_json(*milliseconds: float | None, attempts: int = 0) -> dict[str, Any]:
    names = ("p50_ms", "p95_ms", "p99_ms", "p999_ms")
    return {"attempts": attempts, **dict(zip(names, milliseconds or (None,) * len(names), strict=True))}


def minute_json(at: str, *, seconds: float = 60, lag: dict[str, Any] | None = None, **counts: int) -> dict[str, Any]:
    return {"at": at, "seconds": seconds, **dict.fromkeys(FIGURES, 0), **counts, "lag": lag or lag_json()}


def pulse_json(
    *, last: dict[str, Any] | None = None, lag: dict[str, dict[str, Any]] | None = None, **tenants: Any
) -> dict[str, Any]:
    """Of a stage in which nothing went on but in the minute before noon. last: what went on there."""
    minutes = [minute_json(f"2030-01-31T11:{minute}:00.000Z") for minute in range(45, 59)]
    minutes += [last or minute_json(LAST_MINUTE), minute_json(AT, seconds=0)]
    priorities = ("critical", "high", "normal", "low")
    return {
        "minutes": minutes,
        "lag": [{"priority": name, **(lag or {}).get(name, lag_json())} for name in priorities],
        "tenants": {"executions": [], "failures": [], "refusals": [], **tenants},
    }


def health_json(**changes: Any) -> dict[str, Any]:
    """A stage with which all is well."""
    return {
        "status": "ok",
        "reasons": [],
        "at": AT,
        "classes": [class_json(name) for name in ("critical", "high", "normal", "low")],
        "shards": {
            "count": 2,
            "unscanned": {"count": 0, "first": []},
            "cursors_behind": 0,
            "cursors_held": 0,
            "worst": [],
        },
        "sweeper": {
            "published_at": "2030-01-31T11:59:18.000Z",
            "is_fresh": True,
            "audited_to": "2030-01-31T11:54:00.000Z",
            "audit_age_seconds": 360,
        },
        "breakers": {"count": 0, "first": []},
        "pause": {"is_paused": False, "note": "", "since": None},
        "tenants": {"count": 0, "first": []},
        "pulse": pulse_json(),
        **changes,
    }


def troubled_json() -> dict[str, Any]:
    """A stage that is behind in every way."""
    shard = {
        "shard": 7,
        "scanned_at": None,
        "oldest_bucket_at": "2030-01-31T11:20:00.000Z",
        "age_seconds": 2_400,
        "behind": {"count": 12, "first": ["whale", "[acme]"]},
        "held": {"count": 1, "first": ["paused"]},
    }
    return health_json(
        status="behind",
        reasons=["normal is 40 minutes behind", "submissions of low are refused"],
        classes=[
            class_json("critical"),
            class_json("high", budget=0),
            class_json("normal", age_seconds=2_400, oldest_bucket_at="2030-01-31T11:20:00.000Z", lag_seconds=2_399),
            class_json("low", is_shed=True),
        ],
        shards={
            "count": 64,
            "unscanned": {"count": 11, "first": [3, 7]},
            "cursors_behind": 1_200,
            "cursors_held": 1,
            "worst": [shard],
        },
        breakers={
            "count": 1_000,
            "first": [
                {
                    "tenant": "acme",
                    "destination": "https://[2001:db8::1]:8443",
                    "state": "half_open",
                    "opened_at": "2030-01-30T09:00:00.000Z",
                    "until": "2030-01-31T12:00:30.000Z",
                    "error_class": "timeout",
                }
            ],
        },
        tenants={
            "count": 51,
            "first": [
                {"tenant": "globex", "status": "draining", "note": "moves [away]", "since": "2030-01-31T08:00:00.000Z"}
            ],
        },
    )


def test_a_stage_with_which_all_is_well_is_read() -> None:
    with ApiServer(Answer(200, health_json())) as server, a_client(server) as client:
        found = client.health()

    assert [(request.method, request.path) for request in server.requests] == [("GET", "/v1/health")]
    assert (found.status, found.reasons, found.at) == ("ok", (), NOON)
    assert [each.priority for each in found.classes] == ["critical", "high", "normal", "low"]
    assert found.sweeper == SweeperHealth(
        published_at=NOON - timedelta(seconds=42),
        is_fresh=True,
        audited_to=NOON - timedelta(minutes=6),
        audit_age=timedelta(minutes=6),
    )
    assert (found.is_paused, found.paused_since, found.note) == (False, None, "")


def test_all_that_learns_of_a_stage_in_trouble_is_read() -> None:
    with ApiServer(Answer(200, troubled_json())) as server, a_client(server) as client:
        found = client.health()

    assert found.classes[2] == ClassHealth(
        priority=Priority.NORMAL,
        depth=1_234,
        waiting=17,
        budget=50_000,
        lag=timedelta(seconds=2_399),
        is_shed=False,
        oldest_bucket_at=NOON - timedelta(minutes=40),
        age=timedelta(minutes=40),
    )
    assert found.shards == ShardsHealth(
        count=64,
        unscanned=(3, 7),
        unscanned_count=11,
        cursors_behind=1_200,
        cursors_held=1,
        worst=(
            ShardHealth(
                shard=7,
                scanned_at=None,
                oldest_bucket_at=NOON - timedelta(minutes=40),
                age=timedelta(minutes=40),
                behind=Listed(count=12, first=("whale", "[acme]")),
                held=Listed(count=1, first=("paused",)),
            ),
        ),
    )
    assert found.breaker_count == 1_000
    assert found.breakers == (
        Breaker(
            tenant="acme",
            destination="https://[2001:db8::1]:8443",
            state=BreakerState.HALF_OPEN,
            opened_at=datetime(2030, 1, 30, 9, tzinfo=UTC),
            until=NOON + timedelta(seconds=30),
            error_class="timeout",
        ),
    )
    assert found.tenant_count == 51
    assert found.tenants == (
        UnservedTenant(
            tenant="globex", status=TenantStatus.DRAINING, note="moves [away]", since=NOON - timedelta(hours=4)
        ),
    )


def test_what_is_not_known_is_none() -> None:
    unknown = dict.fromkeys(("depth", "waiting", "budget", "lag_seconds", "is_shed", "oldest_bucket_at"))
    sweeper = {"published_at": None, "is_fresh": False, "audited_to": None, "audit_age_seconds": None}
    answer = health_json(status="unknown", classes=[class_json("low", **unknown)], sweeper=sweeper)
    with ApiServer(Answer(200, answer)) as server, a_client(server) as client:
        found = client.health()

    (low,) = found.classes
    assert (low.depth, low.waiting, low.budget, low.lag, low.is_shed, low.oldest_bucket_at) == (None,) * 6
    assert (found.sweeper.published_at, found.sweeper.audited_to, found.sweeper.audit_age) == (None,) * 3


def test_a_pause_is_read_with_its_note() -> None:
    pause = {"is_paused": True, "note": "why", "since": "2030-01-31T11:00:00.000Z"}
    with ApiServer(Answer(200, health_json(status="paused", pause=pause))) as server, a_client(server) as client:
        found = client.health()

    assert (found.is_paused, found.note, found.paused_since) == (True, "why", NOON - timedelta(hours=1))


def test_who_is_no_operator_is_refused() -> None:
    problem = {"type": "x", "title": "No", "status": 403, "code": "forbidden"}
    with ApiServer(Answer(403, problem)) as server, a_client(server) as client, pytest.raises(ApiProblem) as refused:
        client.health()

    assert refused.value.code == "forbidden"


@pytest.mark.parametrize("answer", [{}, {**health_json(), "at": "noon"}, []])
def test_an_answer_that_is_none_is_not_taken_for_one(answer: Any) -> None:
    with ApiServer(Answer(200, answer)) as server, a_client(server) as client, pytest.raises(Unreachable):
        client.health()


def test_the_question_is_asked_again_when_its_answer_was_lost() -> None:
    with ApiServer(Answer(503, {}), Answer(200, health_json())) as server, a_client(server) as client:
        assert client.health().status == "ok"


def test_what_goes_on_is_read() -> None:
    counts = {name: number for number, name in enumerate(FIGURES, start=1)}
    last = minute_json(LAST_MINUTE, lag=lag_json(10, 200, 1_500, 4_000.5, attempts=4), **counts)
    answer = pulse_json(
        last=last,
        lag={"low": lag_json(1, 2, 3, 4, attempts=1)},
        executions=[{"tenant": "acme", "count": 4}],
        failures=[{"tenant": "umbrella", "count": 2}],
        refusals=[{"tenant": "whale", "count": 9}],
    )
    with ApiServer(Answer(200, health_json(pulse=answer))) as server, a_client(server) as client:
        found = client.health().pulse

    assert len(found.minutes) == 16
    assert (found.last.at, found.last.elapsed) == (NOON - timedelta(minutes=1), timedelta(minutes=1))
    assert {name: getattr(found.last, name) for name in FIGURES} == counts
    assert found.last.rate("failed") == 7 / 60
    seconds = timedelta(seconds=1)
    assert found.last.lag == Lag(
        attempts=4, p50=0.01 * seconds, p95=0.2 * seconds, p99=1.5 * seconds, p999=4.0005 * seconds
    )
    assert (found.lags["low"].attempts, found.lags["high"].p50) == (1, None)
    assert found.executions == (Standout(tenant="acme", count=4),)
    assert found.failures == (Standout(tenant="umbrella", count=2),)
    assert found.refusals == (Standout(tenant="whale", count=9),)
