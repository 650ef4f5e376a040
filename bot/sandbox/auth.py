"""Who a request comes from and what that one may do."""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass

import jwt
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from bot.sandbox.accounts import LEVELS, App, Installation, Token, at_least
from bot.sandbox.model import Repository
from bot.sandbox.world import World

JWT_LIFE = 600
JWT_SKEW = 60


class Unauthorized(Exception):
    """401 with a reason."""


@dataclass(frozen=True, slots=True)
class Actor:
    """A user, an App (by JWT), an installation of one (by token), or nobody."""

    login: str | None = None
    app: App | None = None
    installation: Installation | None = None
    token: Token | None = None

    @property
    def is_jwt(self) -> bool:
        """True for an App that speaks for itself, not for an installation."""
        return self.app is not None and self.token is None

    @property
    def app_id(self) -> int | None:
        """The App through which the actor acts."""
        return self.app.id if self.app is not None else None


def key_pair() -> tuple[str, str]:
    """A fresh RSA key as PEM, and its public half."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    )
    public = key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    return private.decode(), public.decode()


def authenticate(world: World, header: str | None) -> Actor:
    """The actor of an Authorization header (Bearer, token, Basic); Unauthorized where it does not hold."""
    if not header:
        return Actor()
    scheme, _, value = header.partition(" ")
    value = value.strip()
    if scheme.lower() == "basic":
        try:
            value = base64.b64decode(value).decode().partition(":")[2]
        except (binascii.Error, UnicodeDecodeError) as error:
            raise Unauthorized("Bad credentials") from error
    elif scheme.lower() not in ("bearer", "token"):
        raise Unauthorized("Bad credentials")
    if value.count(".") == 2:
        return Actor(app=_app_of_jwt(world, value))
    token = world.tokens.get(value)
    if token is None or (token.expires_at is not None and token.expires_at <= world.now()):
        raise Unauthorized("Bad credentials")
    if token.installation_id is None:
        return Actor(token.login, token=token)
    installation = world.installations.get(token.installation_id)
    if installation is None:
        raise Unauthorized("Bad credentials")
    return Actor(token.login, world.apps[installation.app_id], installation, token)


def _app_of_jwt(world: World, value: str) -> App:
    try:
        issuer = str(jwt.decode(value, options={"verify_signature": False}).get("iss"))
    except jwt.PyJWTError as error:
        raise Unauthorized("A JSON web token could not be decoded") from error
    app = next((app for app in world.apps.values() if issuer in (str(app.id), app.client_id)), None)
    if app is None:
        raise Unauthorized("Integration not found")
    now = world.now().timestamp()
    try:
        claims = jwt.decode(
            value,
            app.public_key,
            algorithms=["RS256"],
            options={"verify_exp": False, "verify_iat": False, "require": ["exp", "iat", "iss"]},
        )
    except jwt.PyJWTError as error:
        raise Unauthorized(f"A JSON web token could not be decoded: {error}") from error
    if claims["exp"] <= now - JWT_SKEW:
        raise Unauthorized("'Expiration time' claim ('exp') must be a numeric value representing a future time")
    if claims["exp"] > now + JWT_LIFE + JWT_SKEW:
        raise Unauthorized("'Expiration time' claim ('exp') is too far in the future")
    if claims["iat"] > now + JWT_SKEW:
        raise Unauthorized(
            "'Issued at' claim ('iat') must be an Integer representing the time that the assertion was issued"
        )
    return app


def permits(actor: Actor, permission: str, *, on_pull: bool = False) -> bool:
    """True where the installation token has one of the permissions (`name:level`, alternatives by `|`)."""
    assert actor.token is not None
    for alternative in permission.split("|"):
        name = alternative
        if name.startswith("pull:"):
            if not on_pull:
                continue
            name = name.removeprefix("pull:")
        name, _, level = name.partition(":")
        if name == "metadata" or LEVELS.index(actor.token.permissions.get(name, "none")) >= LEVELS.index(level):
            return True
    return False


def within(world: World, actor: Actor, repository: Repository) -> bool:
    """True where the actor's installation, and its token, include the repository."""
    assert actor.installation is not None
    assert actor.token is not None
    names = actor.token.repositories
    return world.covers(actor.installation, repository) and (names is None or repository.full_name in names)


def may_see(world: World, actor: Actor, repository: Repository) -> bool:
    """True where the repository exists for the actor."""
    if not repository.private:
        return True
    if actor.installation is not None:
        return within(world, actor, repository)
    return actor.login is not None and at_least(world.role(actor.login, repository), "read")


def may_push(world: World, actor: Actor, repository: Repository) -> bool:
    """True where the actor may change the repository's content."""
    if actor.installation is not None:
        return within(world, actor, repository) and permits(actor, "contents:write")
    return actor.login is not None and at_least(world.role(actor.login, repository), "write")


def role_of(world: World, actor: Actor, repository: Repository) -> str:
    """The actor's role; an installation that may write contents acts as one who may write."""
    if actor.installation is not None:
        return "write" if may_push(world, actor, repository) else "read"
    return world.role(actor.login, repository)
