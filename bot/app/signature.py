"""Whether a webhook is GitHub's: HMAC-SHA256 over the raw body, compared in constant time."""

from __future__ import annotations

import hashlib
import hmac

_PREFIX = "sha256="


def sign(secret: bytes, body: bytes) -> str:
    """The value of X-Hub-Signature-256 for a body."""
    return _PREFIX + hmac.new(secret, body, hashlib.sha256).hexdigest()


def signed(secret: bytes, body: bytes, signature: str) -> bool:
    """True where the signature is the body's; an empty secret signs nothing."""
    if not secret:
        return False
    return hmac.compare_digest(sign(secret, body).encode(), signature.encode("utf-8", "replace"))
