"""A connection that can be cut: a proxy between a browser and a server."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from urllib.parse import urlsplit


class Cable:
    """Passes bytes between whoever connects to `address` and the server, until it is cut; then it
    closes every connection and takes none until it is mended. While it is `lossy`, what a class
    sends is lost without a word to either end, and on the same connection ever after. While `flows`
    is not set, bytes wait in it, as before a server that has stalled."""

    def __init__(self, server: str) -> None:
        self.to = urlsplit(server).hostname, urlsplit(server).port
        self._ends: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._port = 0
        self._of_class: set[socket.socket] = set()
        self._lost: set[socket.socket] = set()
        self.lossy = False
        self.flows = threading.Event()
        self.flows.set()
        self.mend()

    @property
    def address(self) -> str:
        """The address at which a browser reaches the server through it."""
        return f"http://127.0.0.1:{self._port}"

    def mend(self) -> None:
        """Pass bytes from here on."""
        self._door = socket.create_server(("127.0.0.1", self._port))
        self._port = self._door.getsockname()[1]
        threading.Thread(target=self._open, args=(self._door,), daemon=True).start()

    def cut(self) -> None:
        """Close every connection."""
        with suppress(OSError):
            self._door.shutdown(socket.SHUT_RDWR)
        self._door.close()
        with self._lock:
            for end in self._ends:
                with suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)
            self._ends.clear()

    def _open(self, door: socket.socket) -> None:
        while True:
            try:
                near, _ = door.accept()
                far = socket.create_connection(self.to)
            except OSError:
                return
            with self._lock:
                self._ends |= {near, far}
            for one, other in ((near, far), (far, near)):
                threading.Thread(target=self._pass, args=(one, other), daemon=True).start()

    def _pass(self, one: socket.socket, other: socket.socket) -> None:
        with suppress(OSError):
            while said := one.recv(65_536):
                if b"/class/news" in said:
                    self._of_class |= {one, other}
                self.flows.wait()
                if self.lossy and one in self._of_class:
                    self._lost |= {one, other}
                if one not in self._lost:
                    other.sendall(said)
        for end in (one, other):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        with self._lock:
            self._ends -= {one, other}
        one.close()
