"""Queries for a page of what a tenant has, which every list of the API refuses."""

from typing import Any

REFUSED_QUERIES: list[tuple[dict[str, Any], str]] = [
    ({}, "tenant"),
    ({"tenant": "a#b"}, "tenant"),
    ({"tenant": "acme", "limit": 0}, "limit"),
    ({"tenant": "acme", "limit": 501}, "limit"),
    ({"tenant": "acme", "state": "open"}, "state"),
]
"""Each with the field that is wrong."""
