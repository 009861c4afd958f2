import dataclasses
import re
from datetime import timedelta
from typing import Any

import pytest

from functions.domain.errors import InvalidWheel
from functions.domain.jobs.claims import LEASE_MARGIN
from functions.domain.targets.targets import AllowedTargets
from infra.queue_sources import warm_messages
from infra.stage import PRIORITIES, STAGES, Stage
from infra.stage_parts import FunctionSize, InvalidStage, Jwt
from infra.throughput import FOR_A_HERD, MESSAGES_OF_A_POLLER, Pollers, WarmThroughput


def a_stage(**changes: Any) -> Stage:
    return dataclasses.replace(Stage.named("dev"), **changes)


def test_a_stage_is_found_by_its_name() -> None:
    assert [Stage.named(stage.name) for stage in STAGES] == list(STAGES)


def test_an_unknown_stage_is_refused_with_the_names_there_are() -> None:
    with pytest.raises(
        InvalidStage, match="no stage 'staging': use --context stage= with one of local, small, dev, prod, scale"
    ):
        Stage.named("staging")


@pytest.mark.parametrize("name", ["Dev", "my-stage", "", "averylongname"])
def test_a_name_that_would_break_the_stack_names_is_refused(name: str) -> None:
    with pytest.raises(InvalidStage, match=f"the stage's name is '{name}': use up to 10 lower-case letters"):
        a_stage(name=name)


def test_a_wheel_that_could_lose_a_job_cannot_be_built() -> None:
    with pytest.raises(InvalidWheel, match="GUARD is 239 s"):
        a_stage(wheel=dataclasses.replace(Stage.named("dev").wheel, guard=timedelta(seconds=239)))


def test_a_lease_ends_before_its_message_comes_back() -> None:
    stage = a_stage()

    assert stage.lease == stage.longest_attempt + LEASE_MARGIN
    assert stage.lease <= stage.visibility - stage.wheel.lease_skew


def test_a_worker_without_time_to_settle_is_refused() -> None:
    with pytest.raises(InvalidStage, match=r"worker.timeout is 10 s: use more than 10 s"):
        a_stage(worker=FunctionSize(memory_mb=512, timeout=timedelta(seconds=10)))


def test_a_lease_is_as_long_as_the_longest_claim_that_a_worker_makes() -> None:
    stage = a_stage(worker=FunctionSize(memory_mb=512, timeout=timedelta(seconds=90)))

    assert (stage.longest_attempt, stage.lease) == (timedelta(seconds=80), timedelta(seconds=85))
    assert stage.visibility == timedelta(seconds=90 + 25)


def test_the_workers_of_dev_leave_some_of_a_new_account_s_ten_functions_to_the_others() -> None:
    assert sum(limit or 10 for limit in Stage.named("dev").max_concurrency) < 10


def test_every_priority_needs_a_concurrency() -> None:
    with pytest.raises(InvalidStage, match="max_concurrency has 3 entries: give one for each of critical, high"):
        a_stage(max_concurrency=(None, None, 4))


@pytest.mark.parametrize("limit", [0, 1, 1_001])
def test_a_concurrency_that_sqs_does_not_take_is_refused(limit: int) -> None:
    with pytest.raises(
        InvalidStage, match=f"max_concurrency of low is {limit}: use 2 to 1000, pollers for more, or None"
    ):
        a_stage(max_concurrency=(None, None, None, limit))


def test_every_priority_needs_pollers_or_none() -> None:
    with pytest.raises(
        InvalidStage, match="dev: pollers has 1 entries: give one for each of critical, high, normal, low"
    ):
        a_stage(pollers=(Pollers(minimum=2, maximum=2),))


def test_before_herds_a_class_gets_messages_by_the_workers_that_it_may_have_and_none_where_no_stage_asked() -> None:
    scale = Stage.named("scale")
    assert warm_messages(scale) == (234, 351, 1_171, 234)
    unlimited = dataclasses.replace(scale, pollers=(None,) * 4)
    assert warm_messages(unlimited) == (146,) * 4  # of the 1,250 that AWS gives a source
    assert warm_messages(Stage.named("prod")) == ()


@pytest.mark.parametrize("ready", [-1, 3])
def test_workers_kept_started_are_no_more_than_critical_jobs_may_have(ready: int) -> None:
    with pytest.raises(
        InvalidStage, match=f"dev: ready_critical is {ready}: use 0 to 2, which is all that critical jobs"
    ):
        a_stage(ready_critical=ready)


def test_pollers_beside_a_maximum_concurrency_are_refused_as_aws_does() -> None:
    with pytest.raises(
        InvalidStage,
        match="dev: high has pollers, and a max_concurrency of 2, which AWS excludes beside them: set it to None; "
        "30 pollers run up to 300 workers",
    ):
        a_stage(pollers=(None, Pollers(minimum=2, maximum=30), None, None))


@pytest.mark.parametrize(
    ("minimum", "maximum", "message"),
    [
        (1, 10, "minimum is 1: use 2 to 200"),
        (201, 1_000, "minimum is 201: use 2 to 200"),
        (2, 1, "maximum is 1: use 2 to 2000"),
        (2, 2_001, "maximum is 2001: use 2 to 2000"),
        (50, 40, "minimum is 50 and maximum 40: use no more than that"),
    ],
)
def test_pollers_that_cloudformation_does_not_take_are_refused(minimum: int, maximum: int, message: str) -> None:
    with pytest.raises(InvalidStage, match=f"pollers: {message}"):
        Pollers(minimum=minimum, maximum=maximum)


def test_a_class_with_pollers_may_have_more_than_a_thousand_workers() -> None:
    stage = a_stage(max_concurrency=(None, None, 7, None), pollers=(Pollers(minimum=2, maximum=150), *(None,) * 3))

    assert stage.workers == (1_500, None, 7, None)
    assert stage.concurrency == 1_500 + 7 + stage.wheel.scan_shards + 2


@pytest.mark.parametrize(
    ("reads", "writes", "message"),
    [(11_999, 4_000, "reads is 11999: use at least 12,000"), (12_000, 3_999, "writes is 3999: use at least 4,000")],
)
def test_less_than_a_new_table_takes_anyway_is_refused(reads: int, writes: int, message: str) -> None:
    with pytest.raises(InvalidStage, match=f"warm_throughput: {message}, which every table on demand begins with"):
        WarmThroughput(reads=reads, writes=writes)


@pytest.mark.parametrize("setting", ["warm_throughput", "restored_tables"])
def test_a_table_that_there_is_not_is_refused_by_name(setting: str) -> None:
    with pytest.raises(InvalidStage, match=f"dev: {setting} has 'timer': use timers, ledger, schedules, "):
        a_stage(**{setting: {"timer": WarmThroughput(reads=12_000, writes=4_000)}})


def test_scale_has_what_its_load_takes() -> None:
    """100,000 executions a second, of which `normal` may be all; 50,000 submissions a second; a herd of 5 million in four minutes."""
    scale = Stage.named("scale")
    normal = scale.pollers[PRIORITIES.index("normal")]

    assert normal is not None
    assert normal.maximum * MESSAGES_OF_A_POLLER >= 100_000
    assert scale.warm_throughput["ledger"].writes >= 2 * 100_000
    assert scale.warm_throughput["timers"].writes >= 50_000
    # A minute's alarms are handled within half of it.
    assert scale.warm_throughput["schedule_state"].writes >= 2 * 5_000_000 / timedelta(minutes=4).total_seconds()
    assert scale.ready_capacity >= 100_000 * timedelta(minutes=3).total_seconds()


def test_a_stage_for_a_herd_is_scale_with_more_and_never_less() -> None:
    """Warm throughput cannot be lowered again, so what is added must not lower any of it."""
    scale = Stage.named("scale")

    herd = dataclasses.replace(scale, warm_throughput={**scale.warm_throughput, **FOR_A_HERD})

    assert herd.warm_throughput.keys() == scale.warm_throughput.keys()
    for table, warm in scale.warm_throughput.items():
        assert herd.warm_throughput[table].writes >= warm.writes
        assert herd.warm_throughput[table].reads >= warm.reads
    # Each of the 512 keys of a bucket may have a partition for itself.
    assert herd.warm_throughput["timers"].writes / 1_000 >= scale.wheel.write_shards


@pytest.mark.parametrize("sample", [0, -0.1, 1.1])
def test_an_audit_of_nothing_is_refused(sample: float) -> None:
    with pytest.raises(InvalidStage, match=r"audit_sample is .*: use a share above 0 and up to 1"):
        a_stage(audit_sample=sample)


def test_plain_http_is_refused_where_data_is_kept() -> None:
    with pytest.raises(InvalidStage, match="dev: allow_plain_http is for throw-away stages: set it to False"):
        a_stage(allow_plain_http=True)


def test_a_stage_allows_endpoints_and_handlers_unless_it_says_otherwise() -> None:
    for name in ("dev", "prod"):
        assert Stage.named(name).allowed_targets == AllowedTargets(("https://*", "handler:*"))


@pytest.mark.parametrize("pattern", ["*", "arn:aws:ecs:*:*:*", "arn:aws:sqs:*:12345:orders", "https://a/b"])
def test_a_pattern_of_targets_that_is_none_or_allows_nothing_is_refused_by_name(pattern: str) -> None:
    with pytest.raises(InvalidStage, match=re.escape(f"dev: targets has {pattern!r}: ")):
        a_stage(targets=("https://*", pattern))


def test_plain_http_is_not_among_the_targets_where_it_is_not_allowed() -> None:
    with pytest.raises(InvalidStage, match=r"dev: targets has 'http://\*', which nothing can match: allow_plain_http"):
        a_stage(targets=("http://*",))


@pytest.mark.parametrize("network", ["10.0.0.0/8", "fd12::/32", "192.0.2.7/32"])
def test_a_network_may_be_allowed_although_it_is_not_public(network: str) -> None:
    assert a_stage(allowed_networks=(network,)).allowed_networks == (network,)


@pytest.mark.parametrize("network", ["10.0.0.1/8", "10.0.0.0/33", "example.com", "", "0.0.0.0/0", "::/0"])
def test_a_network_that_is_none_or_all_of_them_is_refused_by_name(network: str) -> None:
    with pytest.raises(InvalidStage, match=re.escape(f"dev: allowed_networks: {network!r} is ")):
        a_stage(allowed_networks=("10.0.0.0/8", network))


@pytest.mark.parametrize("network", ["127.0.0.1/32", "126.0.0.0/7", "::1/128"])
def test_a_worker_that_serves_tenants_does_not_call_itself(network: str) -> None:
    with pytest.raises(InvalidStage, match="where the worker's own runtime listens: leave loopback to throw-away"):
        a_stage(allowed_networks=(network,))


@pytest.mark.parametrize("pattern", ["", "ops", "arn:aws:iam::*:role/ops", "arn:aws:iam::123456789012:role/team/*"])
def test_operators_that_are_no_patterns_are_refused_by_name(pattern: str) -> None:
    with pytest.raises(InvalidStage, match=re.escape(f"dev: operators: {pattern!r} ")):
        a_stage(operators=("arn:aws:iam::123456789012:role/ops-*", pattern))


def test_the_operators_of_production_are_the_role_of_its_stack_alone() -> None:
    assert Stage.named("prod").operators == ()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"issuer": "http://login.example.com"}, "jwt.issuer is 'http://login.example.com': use the https address"),
        ({"audience": ()}, "jwt.audience is empty"),
        ({"audience": ("",)}, "jwt.audience is empty"),
        ({"tenant_claim": ""}, "jwt.tenant_claim is empty"),
    ],
)
def test_tokens_that_anybody_could_have_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidStage, match=message):
        Jwt(**{"issuer": "https://login.example.com", "audience": ("a",), "tenant_claim": "tenant", **changes})


@pytest.mark.parametrize(
    ("memory_mb", "seconds", "message"),
    [
        (64, 10, "memory_mb is 64: use 128 to 10240 MB"),
        (512, 0, "timeout is 0:00:00"),
        (512, 901, "timeout is 0:15:01"),
    ],
)
def test_a_size_that_lambda_does_not_take_is_refused(memory_mb: int, seconds: int, message: str) -> None:
    with pytest.raises(InvalidStage, match=message):
        FunctionSize(memory_mb=memory_mb, timeout=timedelta(seconds=seconds))


def test_the_priorities_are_those_of_the_domain() -> None:
    from functions.domain.jobs.job import Priority

    assert tuple(priority.name.lower() for priority in Priority) == PRIORITIES
