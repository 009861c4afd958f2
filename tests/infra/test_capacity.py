"""What a stage needs of an account: as it is set, and at a rate."""

import dataclasses

import pytest

from bench.cost_inputs import read_measured
from infra.capacity import (
    AUDIT_LINE_BYTES,
    BURST,
    CONCURRENCY,
    LEDGER_WRITES,
    QUOTAS,
    REQUESTS,
    RULES,
    STREAM_BYTES,
    TABLE_READS,
    TABLE_WRITES,
    Quota,
    needed_quotas,
)
from infra.stage import STAGES, Stage
from infra.throughput import FOR_A_HERD
from simulation.scenarios import executions
from simulation.size import StageSize

DEPLOYED = [stage for stage in STAGES if not stage.emulated]


def least(stage: Stage, quota: Quota, *, at: float | None = None) -> float:
    (found,) = (need.least for need in needed_quotas(stage, executions=at) if need.quota is quota)
    return found


@pytest.mark.parametrize("name", ["dev", "prod"])
def test_a_stage_as_it_is_set_fits_into_the_defaults_of_most_regions(name: str) -> None:
    stage = Stage.named(name)
    assert [need for need in needed_quotas(stage) if need.least > need.quota.default] == []


def test_scale_needs_invocations_and_writes_that_no_account_has_at_first() -> None:
    scale = Stage.named("scale")
    short = {need.quota for need in needed_quotas(scale) if need.least > need.quota.default}

    assert short == {CONCURRENCY, TABLE_WRITES}
    assert least(scale, CONCURRENCY) == sum(limit or 0 for limit in scale.workers) + 512 + 2
    assert least(scale, TABLE_WRITES) == max(warm.writes for warm in scale.warm_throughput.values())


def test_warm_throughput_is_what_a_deployment_stops_without() -> None:
    stops = {need.quota for need in needed_quotas(Stage.named("scale"), executions=100_000) if need.is_deployed}

    assert stops == {TABLE_WRITES, TABLE_READS}
    assert not any(need.is_deployed for need in needed_quotas(Stage.named("prod"), executions=100_000))


def test_a_stage_for_a_herd_is_refused_before_its_quotas_are_raised() -> None:
    scale = Stage.named("scale")
    herd = dataclasses.replace(scale, warm_throughput={**scale.warm_throughput, **FOR_A_HERD})

    assert least(herd, TABLE_WRITES) == FOR_A_HERD["timers"].writes
    assert least(herd, TABLE_READS) == FOR_A_HERD["schedules"].reads
    assert {need.quota for need in needed_quotas(herd) if need.is_deployed} == {TABLE_WRITES, TABLE_READS}


@pytest.mark.parametrize("stage", DEPLOYED, ids=lambda stage: stage.name)
def test_a_rate_never_needs_less_than_the_stage_as_it_is_set(stage: Stage) -> None:
    at_rate = {need.quota: need.least for need in needed_quotas(stage, executions=1)}

    assert all(need.least <= at_rate[need.quota] for need in needed_quotas(stage))


def test_at_a_hundred_thousand_a_second_the_defaults_of_an_account_are_not_enough() -> None:
    prod = Stage.named("prod")
    short = {need.quota.name for need in needed_quotas(prod, executions=100_000) if need.least > need.quota.default}

    assert {CONCURRENCY.name, TABLE_WRITES.name, STREAM_BYTES.name} <= short
    assert least(prod, TABLE_WRITES, at=100_000) == 200_000


def test_a_hundred_thousand_a_second_need_no_more_invocations_than_the_simulated_stage_may_have() -> None:
    size: StageSize = executions(is_full=True).size
    dev = Stage.named("dev")
    most = sum(workers or 0 for workers in size.stage.workers)
    beside = size.shards + 2 * len(dev.max_concurrency)

    assert beside + most / 10 < least(dev, CONCURRENCY, at=100_000) <= beside + most
    assert least(dev, RULES, at=100_000) == -(-size.shards // 5) + 2


def test_units_and_bytes_of_an_execution_are_those_that_were_measured() -> None:
    measured = read_measured()

    assert measured.paths["near, exactly_once"].writes == LEDGER_WRITES
    assert measured.audit_line == AUDIT_LINE_BYTES


def test_smaller_regions_have_smaller_gateways() -> None:
    assert (REQUESTS.default_in("us-east-1"), BURST.default_in("us-east-1")) == (10_000, 5_000)
    assert (REQUESTS.default_in("eu-south-1"), BURST.default_in("eu-south-1")) == (2_500, 1_250)
    assert len(REQUESTS.elsewhere) == 13


def test_every_quota_has_a_page_of_aws_and_a_code_where_service_quotas_has_it() -> None:
    assert all(quota.page.startswith("https://docs.aws.amazon.com/") for quota in QUOTAS)
    assert {quota.service for quota in QUOTAS if quota.code is None} == {"sqs", "firehose"}
    assert len({quota.name for quota in QUOTAS}) == len(QUOTAS)
