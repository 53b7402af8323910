"""A model behind an OpenAI-compatible endpoint, over the standard library alone."""

from __future__ import annotations

import http.client
import json
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from typing import Any

from policy_evaluation.policy import Conversation, Decoding, PolicyError, PolicyFacts

__all__ = ["Endpoint"]

_TRY_AGAIN = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
_FIRST_PAUSE_S = 0.5
_LONGEST_PAUSE_S = 30.0
_MOST_BYTES = 64 << 20


class _Refused(Exception):
    """An attempt that failed but may succeed later."""

    def __init__(self, why: str, pause_s: float = 0.0) -> None:
        super().__init__(why)
        self.pause_s = pause_s


class Endpoint:
    """Asks ``<url>/chat/completions`` with temperature 0.

    Busy servers, broken connections and rate limits are tried again, with growing pauses, until the deadline.

    Args:
        url: Base URL, for instance ``http://localhost:8000/v1``.
        model: Name of the model there.
        decoding: How replies are made. Template options are sent as ``chat_template_kwargs``, which vLLM and
            SGLang know.
        api_key: Sent as a bearer token unless empty.
        deadline_s: Seconds that one reply may take, retries included.

    Raises:
        PolicyError: ``url`` is no HTTP address.
    """

    batch = 1

    def __init__(
        self, url: str, model: str, decoding: Decoding, api_key: str = "", deadline_s: float = 900.0
    ) -> None:
        if not url.startswith(("http://", "https://")):
            raise PolicyError(f"--endpoint {url!r} must begin with http:// or https://.")
        base = url.rstrip("/").removesuffix("/chat/completions")
        self.facts = PolicyFacts("endpoint", model, endpoint=base, decoding=decoding)
        self._url = f"{base}/chat/completions"
        self._decoding = decoding
        self._headers = {"Content-Type": "application/json"}
        if api_key:
            self._headers["Authorization"] = f"Bearer {api_key}"
        self._deadline_s = deadline_s
        self._cancelled = threading.Event()

    def replies(self, conversations: Sequence[Conversation]) -> list[str | None]:
        """Ask for each reply, one after the other.

        Raises:
            PolicyError: The endpoint refused the request, or did not answer before the deadline.
        """
        return [self._reply(conversation) for conversation in conversations]

    def cancel(self) -> None:
        """Try nothing again; a request that is on its way is waited for."""
        self._cancelled.set()

    def _reply(self, conversation: Conversation) -> str:
        body: dict[str, Any] = {
            "model": self.facts.name,
            "messages": conversation.messages(),
            "temperature": 0,
            "max_tokens": self._decoding.max_new_tokens,
        }
        if self._decoding.template_options:
            body["chat_template_kwargs"] = self._decoding.template_options
        end, pause_s = time.monotonic() + self._deadline_s, _FIRST_PAUSE_S
        while True:
            try:
                return self._ask(json.dumps(body).encode("utf-8"), end)
            except _Refused as refused:
                wait_s = max(pause_s, refused.pause_s)
                if time.monotonic() + wait_s >= end:
                    raise PolicyError(
                        f"{self._url} gave no reply for {conversation.task_id} within {self._deadline_s:g} s "
                        f"({refused}). Check that the server runs, or raise --reply-timeout-s."
                    ) from refused
            if self._cancelled.wait(wait_s):
                raise PolicyError("The evaluation was stopped.")
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)

    def _ask(self, body: bytes, end: float) -> str:
        request = urllib.request.Request(self._url, data=body, headers=self._headers, method="POST")
        try:
            with urllib.request.urlopen(request, timeout=max(end - time.monotonic(), 0.1)) as response:
                answer = _read(response, end)
        except urllib.error.HTTPError as error:
            raise _explained(error, self._url) from error
        except (OSError, http.client.HTTPException) as error:
            raise _Refused(str(getattr(error, "reason", "")) or repr(error)) from error
        return _content(answer, self._url)


def _read(response: http.client.HTTPResponse, end: float) -> bytes:
    """Read a body that may come in drips, up to a size and a time."""
    parts: list[bytes] = []
    size = 0
    while part := response.read1(1 << 16):
        parts.append(part)
        size += len(part)
        if size > _MOST_BYTES or time.monotonic() > end:
            raise _Refused("the answer had no end")
    return b"".join(parts)


def _explained(error: urllib.error.HTTPError, url: str) -> Exception:
    with error:
        told = error.read(2_000).decode("utf-8", "replace").strip()
    why = f"HTTP {error.code} {error.reason}: {told}"
    if error.code in _TRY_AGAIN:
        after = error.headers.get("Retry-After", "") if error.headers else ""
        return _Refused(why, float(after) if after.isdigit() else 0.0)
    return PolicyError(f"{url} refuses the request: {why}. Check --endpoint, --model and the API key.")


def _content(answer: bytes, url: str) -> str:
    try:
        content = json.loads(answer)["choices"][0]["message"]["content"]
    except (ValueError, LookupError, TypeError) as error:
        shown = answer[:200].decode("utf-8", "replace")
        raise PolicyError(f"{url} answered something that is no chat completion: {shown!r}.") from error
    # A reasoning model that used up its tokens has no content.
    return content if isinstance(content, str) else ""
