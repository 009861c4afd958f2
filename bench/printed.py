"""What an invocation of a function prints: its log and its metrics, as the logger and the metrics that are deployed write them."""

import io
import logging
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout

from functions.runtime.observability import logger, metrics


@contextmanager
def printed_by(service: str) -> Iterator[io.StringIO]:
    """All that is printed within, under the name of that function."""
    provider, text = metrics.provider, io.StringIO()
    named = provider.namespace, provider.service
    streams = [(each, each.stream) for each in logger.handlers if isinstance(each, logging.StreamHandler)]
    provider.namespace, provider.service = "Tickwheel", service
    for handler, _ in streams:
        handler.setStream(text)
    try:
        with redirect_stdout(text):
            yield text
    finally:
        provider.namespace, provider.service = named
        for handler, stream in streams:
            handler.setStream(stream)
