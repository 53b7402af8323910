"""Answers to messages that would otherwise end a session, and silence towards clients that are gone.

OpenEnv's WebSocket endpoint closes the socket on what is not a JSON object, and fails with a traceback where a
client left during a step. A policy's reply is untrusted, so both are everyday events for this server.
"""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from openenv.core.env_server.types import WSErrorCode, WSErrorResponse

__all__ = ["MessageGuard"]

_Message = MutableMapping[str, Any]
_Receive = Callable[[], Awaitable[_Message]]
_Send = Callable[[_Message], Awaitable[None]]
_App = Callable[[MutableMapping[str, Any], _Receive, _Send], Awaitable[None]]

# Halves of surrogate pairs: as JSON may spell them (whole pairs look alike), and where they stand alone in a text.
_SPELT_HALF = re.compile(r"\\u[dD][89a-fA-F]")
_LONE_HALF = re.compile("[\ud800-\udfff]")


class _NoObject(ValueError):
    """A message that is not a JSON object."""


class MessageGuard:
    """ASGI middleware round OpenEnv's application.

    Args:
        app: The application.
        path: Path of its WebSocket endpoint.
    """

    def __init__(self, app: _App, path: str = "/ws") -> None:
        self._app = app
        self._path = path

    async def __call__(self, scope: MutableMapping[str, Any], receive: _Receive, send: _Send) -> None:
        """Pass a connection on, guarded where it is a session."""
        if scope["type"] != "websocket" or scope["path"] != self._path:
            await self._app(scope, receive, send)
            return
        session = _Session(receive, send)
        await self._app(scope, session.receive, session.send)


class _Session:
    def __init__(self, receive: _Receive, send: _Send) -> None:
        self._receive = receive
        self._send = send
        self._gone = False

    async def receive(self) -> _Message:
        while True:
            message = await self._receive()
            if message["type"] == "websocket.disconnect":
                self._gone = True
            if message["type"] != "websocket.receive":
                return message
            try:
                return {"type": "websocket.receive", "text": _object_text(message)}
            except _NoObject as error:
                await self.send({"type": "websocket.send", "text": _refusal(str(error))})

    async def send(self, message: _Message) -> None:
        if self._gone:
            return
        try:
            await self._send(message)
        except OSError:
            # The client is gone. The endpoint hears of it when it next receives, and then closes the session in order.
            self._gone = True


def _object_text(message: _Message) -> str:
    """The text of a message that is a JSON object whose strings can all be encoded.

    Raises:
        _NoObject: It is something else.
    """
    raw = message.get("text")
    try:
        text = raw if raw is not None else (message.get("bytes") or b"").decode("utf-8")
        parsed = json.loads(text)
        if not isinstance(parsed, dict):
            raise _NoObject(f"Send a JSON object, not {_kind(parsed)}.")
        if _SPELT_HALF.search(text):
            # Nothing that holds one could be quoted in an answer.
            text = _LONE_HALF.sub(
                lambda half: f"\\\\u{ord(half[0]):04x}", json.dumps(parsed, ensure_ascii=False)
            )
        return text
    except _NoObject:
        raise
    except RecursionError:
        raise _NoObject("The message is nested too deeply.") from None
    except ValueError as error:
        raise _NoObject(f"The message is not JSON: {error}") from None


def _kind(value: object) -> str:
    names = {list: "an array", str: "a string", bool: "a boolean", type(None): "null"}
    return names.get(type(value), "a number")


def _refusal(message: str) -> str:
    return WSErrorResponse(data={"message": message, "code": WSErrorCode.INVALID_JSON}).model_dump_json()
