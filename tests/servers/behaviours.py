"""The program behind `servers.hostile`: listens on loopback and does what no sshd should.

    python behaviours.py '{"mute": {"does": "silent"}, …}'

It prints the port of each, and ends with its standard input.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import struct
import sys
from typing import Any

GREETING = b"SSH-2.0-OpenSSH_9.2\r\n"
FOR_EVER = 3600


async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, _: dict[str, Any]) -> None:
    """Accept, and say nothing."""
    await asyncio.sleep(FOR_EVER)


async def reset(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, _: dict[str, Any]) -> None:
    """Accept, and tear the connection down."""
    connection = writer.get_extra_info("socket")
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, _: dict[str, Any]) -> None:
    """Accept, and close in good order."""


async def drip(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, _: dict[str, Any]) -> None:
    """Send a greeting that never comes to its end, a byte at a time."""
    writer.write(b"SSH-2.0-")
    while True:
        await _send(writer, b"x")
        await asyncio.sleep(0.1)


async def endless_banner(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, _: dict[str, Any]
) -> None:
    """Send lines that are no greeting for ever."""
    while True:
        await _send(writer, b"Welcome! This machine is monitored.\r\n" * 200)


async def slow_banner(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, _: dict[str, Any]) -> None:
    """Send lines that are no greeting for ever, ten in a second."""
    while True:
        await _send(writer, b"Please wait\r\n")
        await asyncio.sleep(0.1)


async def flood(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, _: dict[str, Any]) -> None:
    """Send zeros for ever, without a line's end."""
    while True:
        await _send(writer, bytes(65536))


async def web(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, _: dict[str, Any]) -> None:
    """Answer as a web server does."""
    await _send(writer, b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n<h1>Bad Request</h1>\r\n")


async def old(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, _: dict[str, Any]) -> None:
    """Speak version 1 of the protocol."""
    await _send(writer, b"SSH-1.5-OpenSSH_1.2\r\n")
    await asyncio.sleep(FOR_EVER)


async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, _: dict[str, Any]) -> None:
    """Greet, and say no more."""
    await _send(writer, GREETING)
    await asyncio.sleep(FOR_EVER)


async def greet_drip(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, _: dict[str, Any]) -> None:
    """Greet, then send a packet that never comes to its end."""
    await _send(writer, GREETING + struct.pack(">IB", 30004, 4))
    while True:
        await _send(writer, b"\0")
        await asyncio.sleep(0.1)


async def greet_garbage(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, _: dict[str, Any]
) -> None:
    """Greet, then send what is no packet."""
    await _send(writer, GREETING + b"\xff" * 4096)
    await asyncio.sleep(FOR_EVER)


async def greet_flood(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, _: dict[str, Any]) -> None:
    """Greet, then send a packet of two gigabytes."""
    await _send(writer, GREETING + struct.pack(">IB", 0x7FFFFFFC, 4))
    while True:
        await _send(writer, bytes(65536))


async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, options: dict[str, Any]) -> None:
    """Hand everything on to another server, late, and cut off after so many of its bytes."""
    options["drops"] -= 1
    if options["drops"] >= 0:
        return
    far_reader, far_writer = await asyncio.open_connection(*options["to"])
    tasks = [
        asyncio.create_task(_hand_on(reader, far_writer, options["delay"], None)),
        asyncio.create_task(_hand_on(far_reader, writer, options["delay"], options["limit"])),
    ]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        far_writer.close()


async def _hand_on(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, delay: float, limit: int | None
) -> None:
    left = limit
    while left is None or left > 0:
        chunk = await reader.read(65536 if left is None else min(left, 65536))
        if not chunk:
            return
        if left is not None:
            left -= len(chunk)
        await asyncio.sleep(delay)
        await _send(writer, chunk)


async def _send(writer: asyncio.StreamWriter, data: bytes) -> None:
    writer.write(data)
    await writer.drain()


_ALL = {
    function.__name__: function
    for function in (
        silent,
        reset,
        hang_up,
        drip,
        endless_banner,
        slow_banner,
        flood,
        web,
        old,
        greet,
        greet_drip,
        greet_garbage,
        greet_flood,
        relay,
    )
}


async def _serve(options: dict[str, Any]) -> int:
    act = _ALL[options["does"]]

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await act(reader, writer, options)
        except OSError:
            pass  # the other side has gone
        finally:
            writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0, backlog=500)
    return int(server.sockets[0].getsockname()[1])


def _without_server(does: str, kept: list[socket.socket]) -> int:
    """Return a port that refuses connections, or one that never answers to them."""
    listener = socket.socket()
    kept.append(listener)
    listener.bind(("127.0.0.1", 0))
    port = int(listener.getsockname()[1])
    if does == "unanswered":
        listener.listen(0)
        for _ in range(4):  # fill the queue: the kernel drops what comes after
            filler = socket.socket()
            kept.append(filler)
            filler.setblocking(False)
            filler.connect_ex(("127.0.0.1", port))
    return port


async def main() -> None:
    wanted = json.loads(sys.argv[1])
    kept: list[socket.socket] = []
    ports = {}
    for name, options in wanted.items():
        if options["does"] in ("refuse", "unanswered"):
            ports[name] = _without_server(options["does"], kept)
        else:
            ports[name] = await _serve(options)
    sys.stdout.write(json.dumps(ports) + "\n")
    sys.stdout.flush()
    await asyncio.to_thread(sys.stdin.read)
    os._exit(0)


if __name__ == "__main__":
    asyncio.run(main())
