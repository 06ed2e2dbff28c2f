"""A TCP proxy on the loopback whose cable can be cut, held and made slow."""

import contextlib
import socket
import threading
import time

__all__ = ["Cable"]


class Cable:
    """What stands between a client and a server's port.

    Attributes:
        delay_s: how long each piece of an answer takes.
        cut_at: which of the pieces that pass from now on is not let through: both ends then
            find the connection reset. A client's are "asked", a server's are "answered".
        is_held: whether nothing passes, and nobody is told.
        is_away: whether every connection is reset, as where no server is.
    """

    def __init__(self, port):
        self._port = port
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        self.delay_s, self.cut_at, self.is_held = 0.0, None, False
        self._is_away = False
        self._instead = None
        self.cuts = 0
        self._passed = {"asked": 0, "answered": 0}
        self._pairs = []
        self._lock = threading.Lock()
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self, what, number, instead=None):
        """Cut instead of letting through this piece, counted from 0 from now on.

        With ``instead`` the piece is let through, after that was called.
        """
        with self._lock:
            self._passed = {"asked": 0, "answered": 0}
            self.cut_at, self._instead = (what, number), instead

    @property
    def is_away(self):
        return self._is_away

    @is_away.setter
    def is_away(self, is_away):
        self._is_away = is_away
        for pair in self._pairs if is_away else ():
            self._reset(pair)

    @property
    def connections(self):
        """How many were made through it."""
        return len(self._pairs)

    def close(self):
        self._listening.close()
        for pair in self._pairs:
            self._reset(pair)

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                if self._is_away:
                    client.close()
                    continue
                pair = (
                    client,
                    socket.create_connection(("127.0.0.1", self._port)),
                )
                self._pairs.append(pair)
                for what, ends in (("asked", pair), ("answered", pair[::-1])):
                    threading.Thread(
                        target=self._pass,
                        args=(what, *ends, pair),
                        daemon=True,
                    ).start()

    def _pass(self, what, source, target, pair):
        with contextlib.suppress(OSError):
            while piece := source.recv(1 << 20):
                while self.is_held:
                    time.sleep(0.01)
                if what == "answered" and self.delay_s:
                    time.sleep(self.delay_s)
                if self._is_cut(what):
                    break
                target.sendall(piece)
        self._reset(pair)

    def _is_cut(self, what):
        with self._lock:
            is_it = self.cut_at == (what, self._passed[what])
            self._passed[what] += 1
            if is_it:
                self.cut_at = None
                self.cuts += 1
                if self._instead is not None:
                    self._instead()
                    return False
            return is_it

    def _reset(self, pair):
        for end in pair:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()
