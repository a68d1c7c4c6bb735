"""The one channel of a conversation: run a command, give it its input, take its output."""

from __future__ import annotations

from typing import TYPE_CHECKING

from paramiko import Message
from paramiko.common import (
    MSG_CHANNEL_CLOSE,
    MSG_CHANNEL_DATA,
    MSG_CHANNEL_EOF,
    MSG_CHANNEL_EXTENDED_DATA,
    MSG_CHANNEL_FAILURE,
    MSG_CHANNEL_OPEN_FAILURE,
    MSG_CHANNEL_OPEN_SUCCESS,
    MSG_CHANNEL_REQUEST,
    MSG_CHANNEL_SUCCESS,
    MSG_CHANNEL_WINDOW_ADJUST,
    cMSG_CHANNEL_DATA,
    cMSG_CHANNEL_EOF,
    cMSG_CHANNEL_OPEN,
    cMSG_CHANNEL_REQUEST,
)

from webmon.errors import HostError

if TYPE_CHECKING:
    from collections.abc import Callable

ANSWER_CAP_BYTES = 4 * 1024 * 1024
_PACKET = 32 * 1024

# Room for the header of a packet that is as long as the other side allows.
_HEADER = 64


class Channel:
    """What has come over the channel, and what is still to be sent."""

    def __init__(self, send: Callable[[Message], None], user: str, command: str) -> None:
        """Send nothing yet; `send` is how messages go out."""
        self._send = send
        self._user = user
        self._command = command
        self._unsent = b""
        self._end_mark = b""
        self._remote_id = 0
        self._window = 0
        self._packet = _PACKET
        self._runs = False
        self._eof_sent = False
        self._chunks: list[bytes] = []
        self._tail = b""
        self.status: int | None = None
        self.closed = False
        self._handlers = {
            MSG_CHANNEL_OPEN_SUCCESS: self._on_opened,
            MSG_CHANNEL_OPEN_FAILURE: self._on_refused,
            MSG_CHANNEL_SUCCESS: self._on_running,
            MSG_CHANNEL_FAILURE: self._on_refused,
            MSG_CHANNEL_WINDOW_ADJUST: self._on_window,
            MSG_CHANNEL_DATA: self._on_data,
            MSG_CHANNEL_EXTENDED_DATA: self._on_nothing,
            MSG_CHANNEL_EOF: self._on_nothing,
            MSG_CHANNEL_REQUEST: self._on_request,
            MSG_CHANNEL_CLOSE: self._on_close,
        }

    @property
    def is_done(self) -> bool:
        """Tell whether all has come: it was closed, or the end mark and the exit status are here."""
        return self.closed or (self.status is not None and self._end_mark in self._tail)

    def output(self) -> bytes:
        """Return what the command printed."""
        return b"".join(self._chunks)

    def open(self, script: bytes, end_mark: bytes) -> None:
        """Ask for the channel; `script` will be the command's input."""
        self._unsent, self._end_mark = script, end_mark
        message = _message(cMSG_CHANNEL_OPEN)
        message.add_string("session")
        message.add_int(0)
        # So wide that it never has to be adjusted: the wire's cap comes first.
        message.add_int(2 * ANSWER_CAP_BYTES)
        message.add_int(_PACKET)
        self._send(message)

    def handle(self, kind: int, message: Message) -> bool:
        """Take a message; tell whether it was about the channel."""
        handler = self._handlers.get(kind)
        if handler is None:
            return False
        message.get_int()  # our number of the channel; there is only one
        handler(message)
        return True

    def _on_opened(self, message: Message) -> None:
        self._remote_id = message.get_int()
        self._window = message.get_int()
        self._packet = max(_HEADER + 1, min(message.get_int() or _PACKET, _PACKET))
        request = _message(cMSG_CHANNEL_REQUEST, self._remote_id)
        request.add_string("exec")
        request.add_boolean(True)
        request.add_string(self._command)
        self._send(request)

    def _on_running(self, _message: Message) -> None:
        self._runs = True
        self._send_script()

    def _on_window(self, message: Message) -> None:
        self._window += message.get_int()
        self._send_script()

    def _send_script(self) -> None:
        if not self._runs or self._eof_sent:
            return
        while self._unsent and self._window > 0:
            piece = self._unsent[: min(self._window, self._packet - _HEADER)]
            data = _message(cMSG_CHANNEL_DATA, self._remote_id)
            data.add_string(piece)
            self._send(data)
            self._unsent = self._unsent[len(piece) :]
            self._window -= len(piece)
        if not self._unsent:
            self._eof_sent = True
            self._send(_message(cMSG_CHANNEL_EOF, self._remote_id))

    def _on_data(self, message: Message) -> None:
        chunk = message.get_binary()
        self._chunks.append(chunk)
        self._tail = (self._tail + chunk)[-256:]

    def _on_request(self, message: Message) -> None:
        kind = message.get_binary()
        message.get_boolean()
        if kind == b"exit-status":
            self.status = message.get_int()

    def _on_close(self, _message: Message) -> None:
        self.closed = True

    def _on_nothing(self, _message: Message) -> None:
        """Pass over stray stderr, and the end of the output, which its end mark has told."""

    def _on_refused(self, _message: Message) -> None:
        raise HostError(
            "no-shell",
            f"{self._user} may log in but not run a command",
            "Give the account a shell, and allow sessions in its sshd_config and authorized_keys",
        )


def _message(kind: bytes, channel: int | None = None) -> Message:
    message = Message()
    message.add_byte(kind)
    if channel is not None:
        message.add_int(channel)
    return message
