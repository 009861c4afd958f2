"""What a stage is described with."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from functions.domain.metrics import Watching  # noqa: F401  a stage is described with it
from functions.domain.wheel import Wheel

SMALLEST_MEMORY_MB = 128
LARGEST_MEMORY_MB = 10_240
LONGEST_TIMEOUT = timedelta(minutes=15)
"""Lambda's limits."""


class InvalidStage(ValueError):
    """A stage that cannot work; the message names the value and the remedy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionSize:
    """How much memory (MB) a function gets, CPU in proportion, and how long one invocation may take."""

    memory_mb: int
    timeout: timedelta

    def __post_init__(self) -> None:
        """Refuse what Lambda refuses."""
        if not SMALLEST_MEMORY_MB <= self.memory_mb <= LARGEST_MEMORY_MB:
            raise InvalidStage(f"memory_mb is {self.memory_mb}: use {SMALLEST_MEMORY_MB} to {LARGEST_MEMORY_MB} MB")
        if not timedelta(seconds=1) <= self.timeout <= LONGEST_TIMEOUT or self.timeout % timedelta(seconds=1):
            raise InvalidStage(f"timeout is {self.timeout}: use whole seconds, 1 s to {in_seconds(LONGEST_TIMEOUT)}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Jwt:
    """Whose tokens a stage takes beside signatures. tenant_claim: the claim of a token that names its tenant."""

    issuer: str
    audience: tuple[str, ...]
    tenant_claim: str

    def __post_init__(self) -> None:
        """Refuse what no token could satisfy, or any."""
        if not self.issuer.startswith("https://"):
            raise InvalidStage(f"jwt.issuer is {self.issuer!r}: use the https address that tokens have as `iss`")
        if not self.audience or not all(self.audience):
            raise InvalidStage("jwt.audience is empty: without it, tokens for any other service would do")
        if not self.tenant_claim:
            raise InvalidStage("jwt.tenant_claim is empty: it names the claim whose value is the tenant")


def in_seconds(value: timedelta) -> str:
    """For a message."""
    return f"{value.total_seconds():g} s"


def size_of(memory_mb: int, seconds: int) -> FunctionSize:
    """A function of so much memory, for so long."""
    return FunctionSize(memory_mb=memory_mb, timeout=timedelta(seconds=seconds))


def wheel_of(*, bucket: int, lookahead: int, skew: int, guard: int, shards: int) -> Wheel:
    """A wheel that is scanned in as many shards as it is written in; all but those in seconds."""
    return Wheel(
        bucket=timedelta(seconds=bucket),
        lookahead=timedelta(seconds=lookahead),
        skew=timedelta(seconds=skew),
        guard=timedelta(seconds=guard),
        write_shards=shards,
        scan_shards=shards,
    )
