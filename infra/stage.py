"""What differs between environments, as values that cannot be wrong."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta

from aws_cdk.aws_logs import RetentionDays

from functions.adapters.dynamodb.tables import ALL_TABLES
from functions.api.http.requests import Rules
from functions.domain.errors import InvalidInput, InvalidPattern
from functions.domain.instants import EPOCH
from functions.domain.jobs.claims import LEASE_MARGIN
from functions.domain.jobs.job import Priority
from functions.domain.targets.targets import DEFAULT_TARGETS, AllowedTargets
from functions.domain.tenants.access import ANYBODY, check_pattern
from functions.domain.tenants.plan import DEFAULT_PLAN, PLAN_NAME, Limits, read_limits
from functions.domain.wheel import MAX_WAIT, Wheel
from infra.event_templates import EventRule, check_event_rules
from infra.local_stage import QUEUES, RULES, TARGETS
from infra.network_rules import check_networks
from infra.objective import Objective
from infra.scale_stage import POLLERS, WARM_THROUGHPUT
from infra.stage_parts import FunctionSize, InvalidStage, Jwt, Watching, in_seconds, size_of, wheel_of
from infra.submission_rules import check_queues
from infra.throughput import MAX_CONCURRENCY, Pollers, WarmThroughput, check_ready, check_workers

PRIORITIES = tuple(priority.name.lower() for priority in Priority)
"""The names of the classes 0 to 3; everything that exists once per class is in this order."""

LONGEST_NAME = 10
"""So that a stage's name is whole in the names that CloudFormation generates, and cuts, for its resources."""

LONGEST_VISIBILITY = timedelta(hours=12)
"""SQS's limit."""

MIN_BUDGET = 1_000
"""Jobs of a class that a tick of one shard may promote into an empty queue, at least."""

SHORTEST_SHED = timedelta(minutes=1)
SETTLING = LEASE_MARGIN + MAX_WAIT + timedelta(seconds=3)
"""What a worker keeps of its time limit beside the longest attempt: to hold it, to settle it, and to start."""

DELIVERY_MARGIN = timedelta(seconds=25)
"""What a message stays hidden beyond its worker, for the poller's own work, until the worker hides it anew."""

OWN_KEY = "own"
"""A customer's key that the stage makes, rotates and keeps."""

_KEY_ARN = re.compile(
    r"arn:aws[a-z-]*:kms:[a-z0-9-]+:[0-9]{12}:key/(mrk-[0-9a-f]{32}|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12})"
)
_EMAIL = re.compile(r"[^@\s]+@[^@\s]+\.[^@\s]+")
_TABLE_NAME = re.compile(r"[A-Za-z0-9_.-]{3,255}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """One environment; `max_concurrency` and `pollers` have one entry per priority.

    targets: patterns of what jobs may call, as `AllowedTargets` reads them; the worker's role is granted their ARNs.
    allowed_networks: CIDRs that HTTP targets may be in although they are not public. ready_capacity: jobs that a ready
    queue may hold, those included that are due in the next minutes; what is due beyond waits in the far ring.
    shed_after: the lag from which on submissions are refused, `low` first. plans: limits of tenants by the names of plans; a tenant without a plan is on `default`.
    customer_key: what all data is encrypted with: OWN_KEY, or the ARN of a key; None for the keys of AWS. former_keys: ARNs
    of keys that it was encrypted with before, which functions may still open with what was written then.
    alarm_email: who is mailed what pages and what makes a ticket; AWS asks that address for its consent.
    restored_tables: physical names of tables that take the place of the stage's own, after a restore.
    pollers: provisioned ones of a ready queue, where the class has no max_concurrency. warm_throughput: by the names of tables.
    submission_queues: tenants that may send jobs to a queue of their own, each with the roles and users that may send to it.
    submission_files: whether jobs are taken from files in a bucket. event_rules: by their names, events that become jobs; each
    tenant of one has a submission queue.
    ready_critical: workers that are kept started for `critical` jobs alone, by provisioned concurrency.
    warm_herds: whether messages without a job bring workers up before a herd; only once every worker of the stage knows them.
    watching: how closely it is watched: what has an alarm and what is a metric, and whether there is a dashboard.
    traces: whether functions begin traces of what nobody has begun one for; AWS bills each that it keeps.
    log_level: INFO, or DEBUG for every line of every job and tick.
    secret_on_first_use: whether the first function that needs it makes the master key of webhooks. Never changed on a live stage.
    """

    name: str
    wheel: Wheel
    retained: bool
    log_retention: RetentionDays
    api: FunctionSize
    scanner: FunctionSize
    worker: FunctionSize
    sweeper: FunctionSize
    operations: FunctionSize
    dead_letters: FunctionSize
    max_concurrency: tuple[int | None, ...]
    audit_sample: float
    ready_capacity: int
    targets: tuple[str, ...] = DEFAULT_TARGETS
    allowed_networks: tuple[str, ...] = ()
    allow_plain_http: bool = False
    emulated: bool = False
    shed_after: timedelta = timedelta(minutes=5)
    plans: Mapping[str, Limits] = field(default_factory=lambda: {DEFAULT_PLAN: {}}, hash=False)
    operators: tuple[str, ...] = ()
    jwt: Jwt | None = None
    objective: Objective = field(default_factory=Objective)
    customer_key: str | None = None
    former_keys: tuple[str, ...] = ()
    alarm_email: str | None = None
    restored_tables: Mapping[str, str] = field(default_factory=dict, hash=False)
    pollers: tuple[Pollers | None, ...] = (None,) * len(PRIORITIES)
    warm_throughput: Mapping[str, WarmThroughput] = field(default_factory=dict, hash=False)
    warm_herds: bool = False
    ready_critical: int = 0
    submission_queues: Mapping[str, tuple[str, ...]] = field(default_factory=dict, hash=False)
    submission_files: bool = False
    event_rules: Mapping[str, EventRule] = field(default_factory=dict, hash=False)
    log_level: str = "INFO"
    watching: Watching = Watching.FULL
    secret_on_first_use: bool = False
    traces: bool = True

    def __post_init__(self) -> None:
        """Check the sums that the protocols rest on."""
        self._check_name()
        self._check_lease()
        check_workers(self.name, PRIORITIES, self.max_concurrency, self.pollers)
        if self.warm_herds and any(self.max_concurrency):
            raise InvalidStage(
                f"{self.name}: warm_herds is set beside max_concurrency: set one of them to None or False; no more workers can "
                "start than a maximum allows, and messages before a herd would only keep those busy"
            )
        check_ready(self.name, self.ready_critical, workers=self.workers[0])
        self._check_targets()
        check_networks(self.name, self.allowed_networks, retained=self.retained)
        self._check_plans()
        self._check_operators()
        self._check_key()
        self._check_tables()
        fed = {rule.tenant for rule in self.event_rules.values()}
        check_queues(self.name, self.submission_queues, fed=fed, files=self.submission_files)
        check_event_rules(self.name, self.event_rules, queues=self.submission_queues, rules=self._rules)
        if self.ready_capacity < self.wheel.scan_shards * MIN_BUDGET:
            raise InvalidStage(
                f"{self.name}: ready_capacity is {self.ready_capacity}: use at least {MIN_BUDGET} for each of the "
                f"{self.wheel.scan_shards} shards, or their ticks promote next to nothing"
            )
        if self.alarm_email is not None and not _EMAIL.fullmatch(self.alarm_email):
            raise InvalidStage(
                f"{self.name}: alarm_email is {self.alarm_email!r}: use one address, or None and subscribe to the topics"
            )
        if self.shed_after < SHORTEST_SHED:
            raise InvalidStage(
                f"{self.name}: shed_after is {in_seconds(self.shed_after)}: use at least {in_seconds(SHORTEST_SHED)}; "
                "the lag is looked at once a minute"
            )
        if not 0 < self.audit_sample <= 1:
            raise InvalidStage(
                f"{self.name}: audit_sample is {self.audit_sample}: use a share above 0 and up to 1; "
                "without the audit nobody sees a straggler"
            )
        if self.allow_plain_http and self.retained:
            raise InvalidStage(
                f"{self.name}: allow_plain_http is for throw-away stages: set it to False, "
                "or a tenant's payloads travel in clear text"
            )

    @staticmethod
    def named(name: str) -> Stage:
        """Return the stage of that name, or raise `InvalidStage` with the names there are."""
        for stage in STAGES:
            if stage.name == name:
                return stage
        raise InvalidStage(
            f"there is no stage {name!r}: use --context stage= with one of {', '.join(stage.name for stage in STAGES)}, "
            "or add yours to infra/stage.py"
        )

    @property
    def metrics_namespace(self) -> str:
        """Where its functions count. One of its own: stages of one account and region would page for each other."""
        return f"Tickwheel/{self.name}"

    @property
    def allowed_targets(self) -> AllowedTargets:
        """What jobs may call."""
        return AllowedTargets(self.targets)

    @property
    def concurrency(self) -> int:
        """How many functions it may run at once, the API apart: workers, scanners, and what consumes dead letters."""
        consumers = MAX_CONCURRENCY.start * (1 + len(self.submission_queues) + self.submission_files)
        return sum(limit or 0 for limit in self.workers) + self.wheel.scan_shards + consumers

    @property
    def workers(self) -> tuple[int | None, ...]:
        """How many workers each class may have at once; None where nothing limits them."""
        limits = zip(self.pollers, self.max_concurrency, strict=True)
        return tuple(pollers.concurrency if pollers else limit for pollers, limit in limits)

    @property
    def longest_attempt(self) -> timedelta:
        """The longest time a target may take to answer."""
        return self.worker.timeout - SETTLING

    @property
    def longest_timeout(self) -> timedelta:
        """After which nothing that any function had begun goes on."""
        sizes = (self.api, self.scanner, self.worker, self.sweeper, self.operations, self.dead_letters)
        return max(size.timeout for size in sizes)

    @property
    def lease(self) -> timedelta:
        """The longest claim that a worker makes."""
        return self.longest_attempt + LEASE_MARGIN

    @property
    def visibility(self) -> timedelta:
        """How long a received message stays hidden: nobody else sees it while its worker can still run."""
        return self.worker.timeout + DELIVERY_MARGIN

    @property
    def _rules(self) -> Rules:
        limits = {"max_timeout": self.longest_attempt, "allowed": self.allowed_targets}
        return Rules(now=EPOCH, allow_plain_http=self.allow_plain_http, **limits)

    def _check_name(self) -> None:
        plain = self.name.isascii() and self.name.isalnum() and self.name.islower()
        if not plain or len(self.name) > LONGEST_NAME:
            raise InvalidStage(
                f"the stage's name is {self.name!r}: use up to {LONGEST_NAME} lower-case letters and digits, "
                "it is part of the stacks' names"
            )

    def _check_lease(self) -> None:
        if self.longest_attempt <= timedelta(0):
            raise InvalidStage(
                f"{self.name}: worker.timeout is {in_seconds(self.worker.timeout)}: "
                f"use more than {in_seconds(SETTLING)}, which are kept to settle"
            )
        if self.visibility > LONGEST_VISIBILITY:
            raise InvalidStage(f"{self.name}: visibility is {in_seconds(self.visibility)}: shorten worker.timeout")
        if self.lease > self.visibility - self.wheel.lease_skew:
            # Longer, and the message of a crashed worker comes back while its claim still looks alive.
            raise InvalidStage(
                f"{self.name}: lease is {in_seconds(self.lease)}, longer than visibility - skew "
                f"({in_seconds(self.visibility - self.wheel.lease_skew)}): raise DELIVERY_MARGIN or worker.timeout"
            )

    def _check_plans(self) -> None:
        if DEFAULT_PLAN not in self.plans:
            raise InvalidStage(f"{self.name}: plans has no {DEFAULT_PLAN!r}: tenants without a plan are on it")
        for name, limits in self.plans.items():
            if not PLAN_NAME.fullmatch(name):
                raise InvalidStage(f"{self.name}: plans has {name!r}: a name must match {PLAN_NAME.pattern}")
            try:
                read_limits(limits)
            except InvalidInput as error:
                raise InvalidStage(f"{self.name}: plans: {name!r}: {error}") from None

    def _check_operators(self) -> None:
        for pattern in self.operators:
            try:
                check_pattern(pattern)
            except InvalidInput as error:
                raise InvalidStage(f"{self.name}: operators: {error}") from None

    def _check_key(self) -> None:
        if self.customer_key not in (None, OWN_KEY) and not _KEY_ARN.fullmatch(self.customer_key or ""):
            raise InvalidStage(
                f"{self.name}: customer_key is {self.customer_key!r}: use {OWN_KEY!r} for a key that the stage makes, the "
                "whole ARN of a key (log groups and roles take no alias), or None for the keys of AWS"
            )
        for former in self.former_keys:
            if not _KEY_ARN.fullmatch(former):
                raise InvalidStage(f"{self.name}: former_keys has {former!r}: use the whole ARN of a key")
        if self.customer_key is not None and self.secret_on_first_use:
            raise InvalidStage(
                f"{self.name}: secret_on_first_use is set beside customer_key: set it to False; functions make the secret with the key of AWS"
            )
        if len({self.customer_key, *self.former_keys}) <= len(self.former_keys):
            raise InvalidStage(f"{self.name}: former_keys has the customer_key, or one key twice: leave it out")

    def _check_tables(self) -> None:
        known = [schema.name for schema in ALL_TABLES]
        for setting, tables in (("restored_tables", self.restored_tables), ("warm_throughput", self.warm_throughput)):
            for name in tables:
                if name not in known:
                    raise InvalidStage(f"{self.name}: {setting} has {name!r}: use {', '.join(known)}")
        for restored in self.restored_tables.values():
            if not _TABLE_NAME.fullmatch(restored):
                raise InvalidStage(f"{self.name}: restored_tables: {restored!r} is no name of a DynamoDB table")

    def _check_targets(self) -> None:
        try:
            AllowedTargets(self.targets)
        except InvalidPattern as error:
            raise InvalidStage(f"{self.name}: {error}") from None
        for pattern in self.targets:
            if pattern.startswith("http:") and not self.allow_plain_http:
                raise InvalidStage(
                    f"{self.name}: targets has {pattern!r}, which nothing can match: allow_plain_http is False, use https://"
                )


STAGES = (
    Stage(
        name="local",
        # One clock and no network: a smaller skew makes the far ring testable within three minutes.
        wheel=wheel_of(bucket=60, lookahead=90, skew=5, guard=155, shards=2),
        retained=False,
        log_retention=RetentionDays.ONE_DAY,
        api=size_of(512, 29),
        scanner=size_of(512, 60),
        worker=size_of(512, 60),
        sweeper=size_of(512, 60),
        operations=size_of(512, 300),
        dead_letters=size_of(256, 30),
        max_concurrency=(4, 4, 4, 2),  # two cores run everything
        audit_sample=1.0,
        ready_capacity=100_000,
        targets=TARGETS,
        allowed_networks=("127.0.0.0/8", "::1/128"),
        allow_plain_http=True,
        submission_queues=QUEUES,
        submission_files=True,
        event_rules=RULES,
        emulated=True,
        operators=(ANYBODY,),
        log_level="DEBUG",  # every line of every job
    ),
    Stage(
        name="small",
        # One shard: more can follow, and none can be taken away again.
        wheel=wheel_of(bucket=60, lookahead=120, skew=60, guard=240, shards=1),
        retained=True,
        log_retention=RetentionDays.ONE_WEEK,
        api=size_of(512, 29),
        scanner=size_of(512, 60),
        worker=size_of(512, 60),
        sweeper=size_of(512, 60),
        operations=size_of(512, 300),
        dead_letters=size_of(256, 30),
        max_concurrency=(None,) * len(PRIORITIES),  # without a maximum, two pollers wait for messages instead of five
        audit_sample=1.0,
        ready_capacity=100_000,
        watching=Watching.ESSENTIAL,
        secret_on_first_use=True,
        traces=False,  # a job that comes alone is the first of its second: each would be kept
    ),
    Stage(
        name="dev",
        wheel=wheel_of(bucket=60, lookahead=120, skew=60, guard=240, shards=4),
        retained=True,
        log_retention=RetentionDays.ONE_WEEK,
        api=size_of(512, 29),
        scanner=size_of(512, 60),
        worker=size_of(512, 60),
        sweeper=size_of(512, 60),
        operations=size_of(512, 300),
        dead_letters=size_of(256, 30),
        max_concurrency=(2, 2, 2, 2),  # a new account runs ten functions at once, and a throttled message ages
        audit_sample=1.0,
        ready_capacity=100_000,
        operators=(ANYBODY,),
        watching=Watching.ESSENTIAL,
    ),
    Stage(
        name="prod",
        wheel=wheel_of(bucket=60, lookahead=120, skew=60, guard=240, shards=16),
        retained=True,
        log_retention=RetentionDays.ONE_MONTH,
        api=size_of(1_024, 29),
        scanner=size_of(1_769, 60),  # one whole CPU: a tick decodes and sends thousands of timers
        worker=size_of(1_024, 120),
        sweeper=size_of(1_024, 60),
        operations=size_of(1_024, 300),
        dead_letters=size_of(512, 30),
        max_concurrency=(200, 200, 300, 100),  # of an account's 1,000, the rest is for scanners and the API
        audit_sample=0.05,
        ready_capacity=2_000_000,
    ),
    Stage(
        name="scale",
        wheel=wheel_of(bucket=60, lookahead=120, skew=60, guard=240, shards=512),
        retained=True,
        log_retention=RetentionDays.ONE_WEEK,
        api=size_of(1_769, 29),
        scanner=size_of(1_769, 60),
        worker=size_of(1_769, 120),
        sweeper=size_of(1_769, 60),
        operations=size_of(1_769, 300),
        dead_letters=size_of(512, 30),
        max_concurrency=(None,) * len(PRIORITIES),
        pollers=POLLERS,
        warm_throughput=WARM_THROUGHPUT,
        audit_sample=0.01,
        ready_capacity=20_000_000,
        warm_herds=True,
    ),
)
