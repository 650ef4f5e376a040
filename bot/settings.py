"""The process's settings from the environment (GRAFT_…), secrets from variables or files, never printed."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Self

from pydantic import Field, SecretStr, ValidationError, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

_FROM_FILE = ("private_key", "webhook_secret", "runner_tokens", "database_url", "redis_url")
MIB = 1024 * 1024


class SettingsError(Exception):
    """A setting is missing or wrong; the text says which variable and how to mend it."""


class Settings(BaseSettings):
    """What a process of Graft's needs to know; GRAFT_<NAME>_FILE names a file that holds a secret's value."""

    model_config = SettingsConfigDict(env_prefix="GRAFT_", extra="ignore", frozen=True)

    app_id: int = Field(default=0, description="the GitHub App's id")
    private_key: SecretStr = Field(default=SecretStr(""), description="the App's private key (PEM)")
    webhook_secret: SecretStr = Field(default=SecretStr(""), description="the secret that signs the webhooks")
    runner_tokens: SecretStr = Field(
        default=SecretStr(""), description="runners that may register at start, as name=token pairs, comma-separated"
    )
    github_api: str = Field(default="https://api.github.com", description="the address of GitHub's REST API")
    github_git: str = Field(default="https://github.com", description="the address under which git finds repositories")
    data: Path = Field(default=Path(".graft/data"), description="the folder for the database, mirrors and logs")
    database_url: SecretStr = Field(
        default=SecretStr(""), description="the database; SQLite in the data folder where empty"
    )
    redis_url: SecretStr = Field(
        default=SecretStr("redis://127.0.0.1:6379/0"), description="Redis or Valkey, the wake-up"
    )
    public_url: str = Field(
        default="http://127.0.0.1:8000", description="the address under which runners and people find this"
    )
    host: str = "127.0.0.1"
    port: int = Field(default=8000, ge=0, le=65535)
    webhook_max_bytes: int = Field(default=25 * MIB, ge=1024, description="a larger webhook is refused")
    workers: int = Field(default=8, ge=1, description="jobs that one worker process works on at a time")
    workers_per_repository: int = Field(default=4, ge=1, description="of these, how many of one repository")
    job_lease_seconds: float = Field(
        default=60, gt=0, description="a job whose worker is silent for that long is taken over"
    )
    job_attempts: int = Field(default=6, ge=1, description="a job that failed that often is parked")
    poll_seconds: float = Field(default=2, gt=0, description="how often a worker looks for jobs without being woken")
    sweep_seconds: float = Field(
        default=60, gt=0, description="how often the schedule and lost webhooks are looked after"
    )
    redeliver_after_seconds: float = Field(
        default=30, ge=0, description="a webhook that GitHub sent and that is not here after that long is read from it"
    )
    write_pause_seconds: float = Field(
        default=0, ge=0, description="the least time between two writes of an installation"
    )
    rate_limit_wait_seconds: float = Field(
        default=90, ge=0, description="a longer wait on GitHub's limits gives the job back"
    )
    runner_lease_seconds: float = Field(
        default=90, gt=0, description="a run whose runner is silent so long is queued anew"
    )
    keep_payload_days: float = Field(default=14, gt=0)
    keep_delivery_days: float = Field(default=90, gt=0)
    stale_ingest_hours: float = Field(default=24, gt=0, description="no good ingest for that long is an alarm")
    log_json: bool = False

    @model_validator(mode="before")
    @classmethod
    def _secrets_from_files(cls, values: Any) -> Any:
        import os

        for name in _FROM_FILE:
            variable = f"GRAFT_{name.upper()}_FILE"
            path = os.environ.get(variable)
            if path and not values.get(name):
                try:
                    values[name] = Path(path).read_text(encoding="utf-8").strip()
                except OSError as error:
                    raise ValueError(f"{variable} names {path}, which can't be read: {error.strerror}") from error
        return values

    @classmethod
    def load(cls, **given: Any) -> Self:
        """Read the environment; `given` goes first. Raises SettingsError that names the variable."""
        try:
            return cls(**given)
        except ValidationError as error:
            raise SettingsError("; ".join(_say(part) for part in error.errors())) from None

    def require_app(self) -> None:
        """Raises SettingsError where what acting as the App takes is missing."""
        missing = [
            name
            for name, value in (
                ("GRAFT_APP_ID", self.app_id),
                ("GRAFT_PRIVATE_KEY (or GRAFT_PRIVATE_KEY_FILE)", self.private_key.get_secret_value()),
                ("GRAFT_WEBHOOK_SECRET (or GRAFT_WEBHOOK_SECRET_FILE)", self.webhook_secret.get_secret_value()),
            )
            if not value
        ]
        if missing:
            raise SettingsError(f"not set: {', '.join(missing)}; the App's page on GitHub shows or makes them")

    @property
    def store_url(self) -> str:
        """The database's address."""
        return self.database_url.get_secret_value() or f"sqlite:///{(self.data / 'graft.db').resolve()}"

    @property
    def mirrors(self) -> Path:
        """The folder of the bare mirrors: <owner>/<name>.git."""
        return self.data / "mirrors"

    def runner_token_pairs(self) -> dict[str, str]:
        """The runners' names and tokens; raises SettingsError where the list is not name=token, comma-separated."""
        pairs: dict[str, str] = {}
        for part in self.runner_tokens.get_secret_value().replace("\n", ",").split(","):
            name, equals, token = part.strip().partition("=")
            if part.strip() and not (name and equals and token):
                raise SettingsError("GRAFT_RUNNER_TOKENS is not a list of name=token, separated by commas")
            if token:
                pairs[name] = token
        return pairs


def _say(part: Any) -> str:
    where = ".".join(str(word) for word in part["loc"])
    return f"GRAFT_{where.upper()}: {part['msg']}" if where else str(part["msg"])
