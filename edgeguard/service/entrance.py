"""One of a service's sockets: who may connect, and what each of a few clients has said.

A client that says more within 20 ms than the guard is willing to hear is cut off: a queue of old observations would
be a hazard, and the tick belongs to the robot. Nothing here blocks; a client that does not read loses its replies.
"""

from __future__ import annotations

import contextlib
import os
import socket
import stat
from collections.abc import Iterator
from pathlib import Path

from edgeguard.channel import PEER_LIMIT_BYTES, Channel, Message
from edgeguard.clock import NS_PER_MS, ms_from_ns
from edgeguard.errors import AlreadyRunningError, ConfigError
from edgeguard.service.peer import Peer

CLIENT_LIMIT = 8

WINDOW_NS = 20 * NS_PER_MS
MESSAGES_PER_WINDOW = 32
BYTES_PER_WINDOW = 2 * PEER_LIMIT_BYTES
CONNECTIONS_PER_WINDOW = 4
"""What is heard within one window of one client, and the bytes of all together: a robot says one thing per period.
Eight hostile clients cost some ms of it."""


class Client:
    """One connection. ``messages`` and ``n_bytes`` are this window's, garbage included; ``listens``: to the records."""

    def __init__(self, sock: socket.socket) -> None:
        self.channel = Channel(sock, limit_bytes=PEER_LIMIT_BYTES)
        self.messages = self.n_bytes = 0
        self.listens = False

    @property
    def floods(self) -> bool:
        return self.messages >= MESSAGES_PER_WINDOW or self.n_bytes >= BYTES_PER_WINDOW

    def hear(self) -> list[Message]:
        garbage_before, bytes_before = self.channel.garbage, self.channel.taken_bytes
        arrived = self.channel.receive()
        garbage = self.channel.garbage - garbage_before
        self.messages += len(arrived) + garbage
        self.n_bytes += self.channel.taken_bytes - bytes_before
        if garbage:
            self.refuse(f"no message: a JSON object with a type, of at most {PEER_LIMIT_BYTES} bytes")
        return arrived

    def refuse(self, why: str) -> None:
        self.channel.send({"type": "refused", "error": why})

    def confirm(self) -> None:
        self.channel.send({"type": "done"})


class Entrance:
    """A listening socket at ``file``. ``group``: its members may connect too, besides the same user and root."""

    def __init__(self, file: Path, *, group: int | None) -> None:
        self._file = file
        self._group = group
        self._connections = self._n_bytes = 0  # of this window
        self._clients: list[Client] = []
        self.refused = 0  # connections
        self.cut_off = 0
        self.garbage = 0
        self._listener = _listen(file, group=group)

    @property
    def filenos(self) -> list[int]:
        filenos = [client.channel.fileno() for client in self._clients] if self._n_bytes < BYTES_PER_WINDOW else []
        if self._connections < CONNECTIONS_PER_WINDOW:
            filenos.append(self._listener.fileno())
        return filenos

    @property
    def listeners(self) -> list[Client]:
        return [client for client in self._clients if client.listens]

    def begin_window(self) -> None:
        """Everybody may speak again."""
        self._connections = self._n_bytes = 0
        for client in self._clients:
            client.messages = client.n_bytes = 0

    def hear(self) -> Iterator[tuple[Client, Message]]:
        """What every client has said since the last time, oldest first."""
        for client in self._clients:
            if self._n_bytes >= BYTES_PER_WINDOW:  # the rest waits for the next window
                break
            garbage_before, bytes_before = client.channel.garbage, client.n_bytes
            for message in client.hear():
                yield client, message
            self.garbage += client.channel.garbage - garbage_before
            self._n_bytes += client.n_bytes - bytes_before
            if client.floods:
                most = f"{MESSAGES_PER_WINDOW} messages or {BYTES_PER_WINDOW} bytes"
                client.refuse(f"cut off: {most} within {ms_from_ns(WINDOW_NS):g} ms")
                client.channel.close()
                self.cut_off += 1
            elif client.channel.closed:
                client.channel.close()
        self._clients = [client for client in self._clients if not client.channel.closed]
        self._accept()  # last: whoever has just left has made room

    def close(self) -> None:
        """Nobody can connect any more, and the file is gone."""
        self._listener.close()
        self._file.unlink(missing_ok=True)
        for client in self._clients:
            client.channel.close()

    def _accept(self) -> None:
        while self._connections < CONNECTIONS_PER_WINDOW:
            try:
                sock, _ = self._listener.accept()
            except BlockingIOError:
                return
            except OSError:  # gone again, or we have no descriptor left: not before the next window
                self._connections = CONNECTIONS_PER_WINDOW
                return
            self._connections += 1
            client = Client(sock)
            if len(self._clients) >= CLIENT_LIMIT:
                self._turn_away(client, f"{CLIENT_LIMIT} clients are connected already")
            elif not Peer.of(sock).may_enter(group=self._group):
                self._turn_away(client, f"{self._file} is for the guard's user, root, and the group that it was given")
            else:
                self._clients.append(client)

    def _turn_away(self, client: Client, why: str) -> None:
        client.refuse(why)
        client.channel.close()
        self.refused += 1


def _listen(file: Path, *, group: int | None) -> socket.socket:
    """Bind ``file`` for the same user, and for ``group`` if there is one; take the place of a dead guard's socket."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        _clear_away(file)
        umask = os.umask(0o177)
        try:
            listener.bind(str(file))
        finally:
            os.umask(umask)
        if group is not None:
            os.chown(file, -1, group)
            file.chmod(0o660)
        listener.listen(CLIENT_LIMIT)
        listener.setblocking(False)
    except OSError as error:
        listener.close()
        raise ConfigError(
            f"the socket {file} cannot be made ({error.strerror or error}): give a short --sockets directory that this "
            "user may write, and a group that it is a member of"
        ) from error
    except BaseException:  # whatever ends this, also Ctrl-C, must not leave the socket open; it goes on its way
        listener.close()
        raise
    return listener


def _clear_away(file: Path) -> None:
    with contextlib.suppress(FileNotFoundError):
        if not stat.S_ISSOCK(file.lstat().st_mode):
            raise ConfigError(f"{file} is no socket, and is left as it is; give another --sockets directory")
        if _is_alive(file):
            raise AlreadyRunningError(f"another guard listens on {file}: stop it, or give this one its own --sockets")
        file.unlink()


def _is_alive(file: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as probe:
        probe.setblocking(False)
        try:
            probe.connect(str(file))
        except ConnectionRefusedError:
            return False
        except BlockingIOError:  # so many want to connect
            return True
        return True
