"""Signed witnesses of a chain, kept where the database's owner can't change them: one comment's line each."""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC
from typing import Protocol

from bot.core.audit.chain import EntryLike

_LINE = re.compile(r"graft-checkpoint v1 (\S+) (\d{1,12}) ([0-9a-f]{64}) (\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ) ([0-9a-f]+)")


class Signer(Protocol):
    """Signs and checks; the key stays inside."""

    def sign(self, message: bytes) -> bytes:
        """The signature of a message."""

    def check(self, message: bytes, signature: bytes) -> bool:
        """True where the signature is of this message."""


def _long_enough(key: bytes) -> bytes:
    if len(key) < 16:
        raise ValueError("the key of the checkpoints is shorter than 16 bytes")
    return key


class HmacSigner:
    """HMAC-SHA256 with a key of at least 16 bytes; whoever can check can also sign."""

    def __init__(self, key: bytes) -> None:
        self._key = _long_enough(key)

    @classmethod
    def of_secret(cls, secret: bytes) -> HmacSigner:
        """The signer of a deployment, by a secret that it has already, such as the App's private key."""
        return cls(hmac.digest(_long_enough(secret.strip()), b"graft audit checkpoint v1", hashlib.sha256))

    def sign(self, message: bytes) -> bytes:
        """The signature, 32 bytes."""
        return hmac.digest(self._key, message, hashlib.sha256)

    def check(self, message: bytes, signature: bytes) -> bool:
        """True where the signature is of this message and key; in constant time."""
        return hmac.compare_digest(self.sign(message), signature)


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """At `at` the chain of `repository` ended with entry `sequence` and this hash; `signature` in hex."""

    repository: str
    sequence: int
    hash: str
    at: str
    signature: str = ""

    @property
    def message(self) -> bytes:
        """What is signed."""
        return f"graft-checkpoint v1 {self.repository} {self.sequence} {self.hash} {self.at}".encode()

    @property
    def line(self) -> str:
        """The checkpoint as text to post."""
        return f"{self.message.decode()} {self.signature}"


def checkpoint(head: EntryLike, *, signer: Signer) -> Checkpoint:
    """The signed witness of a chain that ends with `head`."""
    at = head.at.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="seconds") + "Z"
    bare = Checkpoint(head.repository, head.sequence, head.hash, at)
    return Checkpoint(bare.repository, bare.sequence, bare.hash, at, signer.sign(bare.message).hex())


def find_checkpoints(texts: Iterable[str]) -> tuple[Checkpoint, ...]:
    """The checkpoints that stand in comments, signed or not."""
    found = (match.groups() for text in texts for match in _LINE.finditer(text))
    return tuple(Checkpoint(name, int(number), digest, at, sign) for name, number, digest, at, sign in found)


def genuine(points: Iterable[Checkpoint], *, repository: str, signer: Signer) -> tuple[Checkpoint, ...]:
    """Those of this repository whose signature holds; anybody may have written the others."""
    return tuple(
        point
        for point in points
        if point.repository == repository
        and len(point.signature) % 2 == 0
        and signer.check(point.message, bytes.fromhex(point.signature))
    )
