"""Length-prefixed frames over a Unix stream socket, with file descriptors beside them.

Every frame is a four-byte big-endian length and that many bytes of MessagePack in a closed vocabulary
of :mod:`msgspec` structs (MessagePack and not JSON, because infinite domain bounds and NaN values must
survive the trip). A peer can be hostile: lengths are bounded before anything is read, unknown
tags and fields are refused, and every wait has a deadline.
"""

from __future__ import annotations

import array
import contextlib
import select
import socket
import struct
import time
from typing import Any, Generic, TypeVar

import msgspec

from gym_kernel.evaluator.processes import close_fds

__all__ = ["Channel", "ChannelClosed", "ChannelTimeout", "FrameError", "sendable_text"]

_HEADER = struct.Struct(">I")
_MAX_FDS = 16

Message = TypeVar("Message", bound=msgspec.Struct)


class ChannelClosed(ConnectionError):
    """The peer has closed its end, or is gone."""


class ChannelTimeout(TimeoutError):
    """The deadline passed before a whole frame was there."""


class FrameError(ValueError):
    """The peer sent something that is not a frame of the agreed vocabulary."""


class Channel(Generic[Message]):
    """One end of a framed connection.

    Args:
        sock: A connected ``AF_UNIX`` stream socket; the channel owns it from now on.
        incoming: Type (usually a union of tagged structs) that received frames must have.
        max_frame_bytes: Longest frame accepted.
    """

    def __init__(self, sock: socket.socket, incoming: Any, *, max_frame_bytes: int = 1 << 20) -> None:
        self._sock = sock
        self._sock.setblocking(False)
        self._decoder = msgspec.msgpack.Decoder(incoming)
        self._max_frame_bytes = max_frame_bytes
        self._buffer = bytearray()
        self._fds: list[int] = []

    def fileno(self) -> int:
        """Descriptor to wait on; -1 once closed."""
        return self._sock.fileno()

    def send(self, message: msgspec.Struct, fds: tuple[int, ...] = (), *, timeout_s: float = 10.0) -> None:
        """Send one frame.

        Args:
            message: A tagged struct of the peer's vocabulary.
            fds: Descriptors to pass along; the peer gets duplicates, these stay open here.
            timeout_s: Longest time to wait for room in the socket's buffer, in seconds.

        Raises:
            ChannelClosed: The peer is gone.
            ChannelTimeout: The peer does not read.
        """
        body = msgspec.msgpack.encode(message)
        data = memoryview(_HEADER.pack(len(body)) + body)
        ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
        deadline = time.monotonic() + timeout_s
        while data:
            try:
                sent = self._sock.sendmsg([data], ancillary)
            except BlockingIOError:
                if not _wait(self._sock, select.POLLOUT, deadline - time.monotonic()):
                    raise ChannelTimeout("The peer does not read its socket.") from None
                continue
            except OSError as error:
                raise ChannelClosed(f"The peer is gone: {error}.") from error
            ancillary = []
            data = data[sent:]

    def receive(self, timeout_s: float | None = None) -> Message:
        """Wait for one frame.

        Args:
            timeout_s: Longest wait in seconds; ``None`` waits for ever.

        Raises:
            ChannelClosed: The peer closed the connection.
            ChannelTimeout: The deadline passed; what arrived of a frame is kept.
            FrameError: The frame is too long or not of the vocabulary.
        """
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        while True:
            message = self.poll()
            if message is not None:
                return message
            remaining = None if deadline is None else deadline - time.monotonic()
            if not _wait(self._sock, select.POLLIN, remaining):
                raise ChannelTimeout("No frame arrived before the deadline.")

    def poll(self) -> Message | None:
        """Return the next frame if all of it is there, without waiting.

        Raises:
            ChannelClosed: The peer closed the connection and no whole frame is left.
            FrameError: The frame is too long or not of the vocabulary.
        """
        while True:
            message = self._take_frame()
            if message is not None:
                return message
            try:
                chunk, fds, _, _ = socket.recv_fds(self._sock, 1 << 16, _MAX_FDS)
            except BlockingIOError:
                return None
            except OSError as error:
                raise ChannelClosed(f"The peer is gone: {error}.") from error
            self._fds.extend(fds)
            if not chunk:
                raise ChannelClosed("The peer closed the connection.")
            self._buffer += chunk

    def take_fds(self, count: int) -> tuple[int, ...]:
        """Take ``count`` descriptors that came with the frames read so far, oldest first.

        Raises:
            FrameError: Fewer have arrived.
        """
        if len(self._fds) < count:
            raise FrameError(f"{count} descriptors were announced, {len(self._fds)} arrived.")
        taken, self._fds = self._fds[:count], self._fds[count:]
        return tuple(taken)

    def close(self) -> None:
        """End the connection and close every descriptor nobody took. Safe to call twice.

        A thread that waits on this channel is woken, and copies of the socket in forked processes are dead too.
        """
        with contextlib.suppress(OSError):
            self._sock.shutdown(socket.SHUT_RDWR)
        self.abandon()

    def abandon(self) -> None:
        """Close this process's copy only: for a forked child that is not a party to the connection."""
        close_fds(self._fds)
        self._fds = []
        self._sock.close()

    def _take_frame(self) -> Message | None:
        if len(self._buffer) < _HEADER.size:
            return None
        (length,) = _HEADER.unpack_from(self._buffer)
        if length > self._max_frame_bytes:
            raise FrameError(f"A frame of {length} bytes is over the limit of {self._max_frame_bytes}.")
        end = _HEADER.size + length
        if len(self._buffer) < end:
            return None
        body = bytes(self._buffer[_HEADER.size : end])
        del self._buffer[:end]
        try:
            return self._decoder.decode(body)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise FrameError(f"The frame is not of the agreed vocabulary: {error}") from error


def sendable_text(text: str) -> str:
    """Text that can travel: lone surrogates, which UTF-8 cannot hold, are written as escapes."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _wait(sock: socket.socket, events: int, timeout_s: float | None) -> bool:
    poller = select.poll()
    poller.register(sock, events)
    milliseconds = None if timeout_s is None else max(0, int(timeout_s * 1000) + 1)
    return bool(poller.poll(milliseconds))
