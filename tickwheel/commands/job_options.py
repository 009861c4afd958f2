"""The options that say what a job is: the same for submitting one, for changing it, and for the jobs of a schedule."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated, Any

import typer

from tickwheel.client.collect import Collect
from tickwheel.client.fields import said
from tickwheel.client.flows import Flow
from tickwheel.commands.option_sets import OptionSet
from tickwheel.commands.options import Header, duration, header_option, headers_of, option_of, read_json

_flow = option_of(Flow.parse)
_collect = option_of(Collect.parse)


@dataclass(kw_only=True)
class RetryOptions(OptionSet):
    """When a failed attempt is tried again."""

    retry_strategy: Annotated[
        str | None, typer.Option(help="Backoff: exponential, fixed, linear or decorrelated_jitter.")
    ] = None
    retry_attempts: Annotated[int | None, typer.Option(help="Highest number of attempts, including the first.")] = None
    retry_base: Annotated[timedelta | None, duration("Wait before the first retry.")] = None
    retry_cap: Annotated[timedelta | None, duration("Longest wait between attempts.")] = None
    retry_max_age: Annotated[timedelta | None, duration("No attempt is due later than this after the first one.")] = (
        None
    )
    retry_interval: Annotated[
        list[timedelta] | None,
        duration("Wait before the second attempt, then before the third, and so on; the last is repeated. Repeatable."),
    ] = None
    retry_jitter: Annotated[str | None, typer.Option(help="Jitter of each wait: none, full or equal.")] = None

    def as_json(self) -> dict[str, Any]:
        """Its options, as the API takes them."""
        fields = {name.removeprefix("retry_"): value for name, value in vars(self).items()}
        intervals = fields.pop("interval")
        return said({**fields, "intervals": intervals})


@dataclass(kw_only=True)
class HttpOptions(OptionSet):
    """How an HTTP target is called."""

    http_method: Annotated[str | None, typer.Option(help="HTTP method: POST, PUT, PATCH, DELETE or GET.")] = None
    header: Annotated[
        list[Header] | None,
        typer.Option(parser=header_option, metavar="NAME=VALUE", help="A header. Repeatable."),
    ] = None
    http_success: Annotated[
        list[int] | None, typer.Option(metavar="STATUS", help="A status that means success. Repeatable.")
    ] = None
    http_retry_on: Annotated[
        list[int] | None, typer.Option(metavar="STATUS", help="A status to retry. Repeatable.")
    ] = None

    def as_json(self) -> dict[str, Any]:
        """Its options, as the API takes them."""
        return said(
            {
                "method": self.http_method,
                "headers": headers_of(self.header),
                "success": self.http_success,
                "retry_on": self.http_retry_on,
            }
        )


@dataclass(kw_only=True)
class JobOptions(OptionSet):
    """A job, but for whose it is and when it runs."""

    panel = "Job options"

    target: Annotated[str | None, typer.Option(help="https://..., handler:NAME or an ARN.")] = None
    payload: Annotated[str | None, typer.Option(help="JSON, or @FILE to read it from a file.", show_default=False)] = (
        None
    )
    priority: Annotated[str | None, typer.Option(help="Priority: critical, high, normal or low.")] = None
    delivery: Annotated[
        str | None, typer.Option(help="Delivery guarantee: exactly_once, at_least_once or at_most_once.")
    ] = None
    precision: Annotated[str | None, typer.Option(help="Precision: default or exact.")] = None
    retry: RetryOptions
    timeout: Annotated[timedelta | None, duration("Timeout of one attempt.")] = None
    expires_after: Annotated[timedelta | None, duration("Do not run the job later than this after its time.")] = None
    run_deadline: Annotated[
        timedelta | None, duration("How long a run may take: all its attempts, waits and 202s.")
    ] = None
    http: HttpOptions
    asynchronous: Annotated[
        bool, typer.Option("--asynchronous", help="Invoke a Lambda function without waiting for its result.")
    ] = False
    tag: Annotated[list[str] | None, typer.Option(metavar="TAG", help="A label of the job. Repeatable.")] = None
    flow: Annotated[
        list[Flow] | None,
        typer.Option(
            parser=_flow,
            metavar="FLOW",
            help="A flow whose limits it shares: stripe, or stripe,rate=60/min,burst=10,concurrency=5. Repeatable.",
        ),
    ] = None
    collect: Annotated[
        Collect | None,
        typer.Option(
            parser=_collect,
            metavar="COLLECT",
            help="Give it to its target together with others: export,for=1h,max=100, or digest,at=0 7 * * *,timezone=Europe/Berlin.",
        ),
    ] = None
    on_success: Annotated[str | None, typer.Option(help="A target that is called when the job has succeeded.")] = None
    on_failure: Annotated[
        str | None, typer.Option(help="A target that is called when the job has failed for good or has expired.")
    ] = None
    on_end: Annotated[str | None, typer.Option(help="A target that is called when the job has ended in any way.")] = (
        None
    )

    def as_json(self) -> dict[str, Any]:
        """Its options, as the API takes them."""
        fields = {name: value for name, value in vars(self).items() if name != "tag"}
        payload = None if self.payload is None else read_json("--payload", self.payload)
        return said({**fields, "payload": payload, "asynchronous": self.asynchronous or None, "tags": self.tag})
