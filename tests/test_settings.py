from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import SecretStr

from bot.settings import Settings, SettingsError


@pytest.fixture(autouse=True)
def nothing_set(monkeypatch: pytest.MonkeyPatch) -> None:
    import os

    for name in [name for name in os.environ if name.startswith("GRAFT_")]:
        monkeypatch.delenv(name)


def test_values_come_from_the_environment_and_secrets_from_files(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    key = tmp_path / "key.pem"
    key.write_text("-----BEGIN\nKEY-----\n")
    monkeypatch.setenv("GRAFT_APP_ID", "12")
    monkeypatch.setenv("GRAFT_PRIVATE_KEY_FILE", str(key))
    monkeypatch.setenv("GRAFT_WEBHOOK_SECRET", "hush")
    monkeypatch.setenv("GRAFT_DATA", str(tmp_path))
    settings = Settings.load(port=0)
    settings.require_app()
    assert settings.app_id == 12
    assert settings.private_key.get_secret_value() == "-----BEGIN\nKEY-----"
    assert settings.store_url == f"sqlite:///{tmp_path}/graft.db"
    assert (settings.port, settings.mirrors) == (0, tmp_path / "mirrors")


def test_secrets_are_never_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PRIVATE_KEY", "WEBHOOK_SECRET", "RUNNER_TOKENS", "DATABASE_URL", "REDIS_URL"):
        monkeypatch.setenv(f"GRAFT_{name}", "redis://u:hush-hush@x")
    settings = Settings.load()
    assert "hush" not in repr(settings) + str(settings) + settings.model_dump_json()


def test_a_variable_goes_before_its_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("from the file")
    monkeypatch.setenv("GRAFT_WEBHOOK_SECRET_FILE", str(tmp_path / "secret"))
    monkeypatch.setenv("GRAFT_WEBHOOK_SECRET", "from the variable")
    assert Settings.load().webhook_secret.get_secret_value() == "from the variable"


def test_what_is_missing_or_wrong_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SettingsError, match=r"GRAFT_APP_ID, GRAFT_PRIVATE_KEY .*GRAFT_WEBHOOK_SECRET"):
        Settings.load().require_app()
    monkeypatch.setenv("GRAFT_PORT", "eighty")
    with pytest.raises(SettingsError, match="GRAFT_PORT: Input should be a valid integer"):
        Settings.load()
    monkeypatch.delenv("GRAFT_PORT")
    monkeypatch.setenv("GRAFT_PRIVATE_KEY_FILE", "/no/such/key.pem")
    with pytest.raises(SettingsError, match=r"GRAFT_PRIVATE_KEY_FILE names /no/such/key\.pem"):
        Settings.load()


def test_runner_tokens() -> None:
    settings = Settings(runner_tokens=SecretStr("h100=abc, b200=d=e\n"))
    assert settings.runner_token_pairs() == {"h100": "abc", "b200": "d=e"}
    assert Settings().runner_token_pairs() == {}
    with pytest.raises(SettingsError, match="name=token"):
        Settings(runner_tokens=SecretStr("justatoken")).runner_token_pairs()
