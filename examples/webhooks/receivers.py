"""Receivers of what Tickwheel sends, each in a framework: the request is verified, and its effect happens once for each key."""

from typing import Any

import flask
from django.http import HttpRequest, HttpResponse
from django.views.decorators.csrf import csrf_exempt
from fastapi import FastAPI, HTTPException, Request

from tickwheel.webhooks import Delivery, InvalidSignature, verify, verify_async

done: dict[str, Any] = {}
"""In a real receiver: a table, written in the transaction of the effect."""


def act(delivery: Delivery) -> None:
    """Do what the payload asks for, once for each key."""
    done.setdefault(delivery.idempotency_key, delivery.payload)


fastapi_app = FastAPI()


@fastapi_app.post("/hooks/invoice")
async def invoice(request: Request) -> dict[str, str]:
    """In FastAPI, or Starlette."""
    try:
        act(await verify_async(request))
    except InvalidSignature as error:
        raise HTTPException(401, str(error)) from None
    return {"status": "done"}


flask_app = flask.Flask(__name__)


@flask_app.post("/hooks/invoice")
def flask_invoice() -> tuple[dict[str, str], int]:
    """In Flask."""
    try:
        act(verify(flask.request))
    except InvalidSignature as error:
        return {"error": str(error)}, 401
    return {"status": "done"}, 200


@csrf_exempt
def django_invoice(request: HttpRequest) -> HttpResponse:
    """In Django."""
    try:
        act(verify(request))
    except InvalidSignature as error:
        return HttpResponse(str(error).encode(), status=401)
    return HttpResponse(b"done")


def lambda_handler(event: dict[str, Any], _context: object) -> dict[str, Any]:
    """Behind API Gateway, REST or HTTP, or a function URL."""
    try:
        act(verify(event))
    except InvalidSignature as error:
        return {"statusCode": 401, "body": str(error)}
    return {"statusCode": 200, "body": "done"}
