"""Holds requests and responses against GitHub's published description of its API (an extract, beside this file)."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

import jsonschema_rs

BASE = "urn:github"

# Where the description is wrong, or says less than the real GitHub does: (method, path, status) and the reason.
DEVIATIONS: dict[tuple[str, str, str], str] = {
    ("GET", "/app/installations", "200"): "allOf a user and an enterprise: no account is both",
    ("PUT", "/repos/{owner}/{repo}/contents/{path}", "409"): "oneOf two open objects: a plain error fits both",
    ("PUT", "/repos/{owner}/{repo}/issues/{issue_number}/labels", "request"): (
        "an empty list, which the prose names as the way to remove all labels, fits no alternative"
    ),
    ("POST", "/repos/{owner}/{repo}/issues/{issue_number}/labels", "request"): (
        "a bare array of names is taken by the real GitHub, and is not described"
    ),
}
# Operations which GitHub has and the extract has not.
UNDESCRIBED = frozenset(
    {
        ("DELETE", "/repos/{owner}/{repo}/branches/{branch}/protection"),
        ("PUT", "/repos/{owner}/{repo}/branches/{branch}/protection"),
        ("POST", "/graphql"),
        ("GET", "/user"),
        ("GET", "/repos/{owner}/{repo}/commits/{ref}/status"),
        ("POST", "/repos/{owner}/{repo}/check-runs/{check_run_id}/rerequest"),
        ("POST", "/repos/{owner}/{repo}/check-suites/{check_suite_id}/rerequest"),
        ("PUT", "/repos/{owner}/{repo}/collaborators/{username}"),
    }
)


class Description:
    """GitHub's description, loaded once, its schemas compiled when first needed."""

    def __init__(self, text: str):
        document = json.loads(text)
        self.paths: dict[str, Any] = document["paths"]
        self.components: dict[str, Any] = document["components"]
        schemas = {name: _plain(schema) for name, schema in self.components["schemas"].items()}
        resource = {"$id": BASE, "components": {"schemas": schemas}}
        self._registry = jsonschema_rs.Registry([(BASE, resource)])
        self._validators: dict[tuple[str, str, str], Any] = {}
        self._query: dict[tuple[str, str], dict[str, Any]] = {}

    def knows(self, method: str, path: str) -> bool:
        """True where the description has the operation."""
        return method.lower() in self.paths.get(path, {})

    def request(self, method: str, path: str, query: Mapping[str, str], body: Any) -> list[str]:
        """What is wrong with a request; empty where nothing is."""
        operation = self.paths[path][method.lower()]
        problems = self._parameters(method, path, operation, query)
        described = operation.get("requestBody")
        if described is None:
            return problems
        schema = next(iter(described["content"].values()))["schema"]
        if body is None:
            if described.get("required", True) and schema.get("required"):
                problems.append("Body should be a JSON object")
            return problems
        if (method, path, "request") not in DEVIATIONS:
            problems += self._errors((method, path, "request"), schema, body)
        return problems

    def response(self, method: str, path: str, status: int, body: Any) -> list[str]:
        """What is wrong with a response; empty where nothing is."""
        operation = self.paths[path][method.lower()]
        if (method, path, str(status)) in DEVIATIONS:
            return []
        responses = operation["responses"]
        described = responses.get(str(status))
        if described is None:
            # every operation can be refused (401, 403, 404, 409, 422, 5xx) whether or not its page says so
            return [] if status >= 400 else [f"status {status} is not described, only {', '.join(responses)}"]
        if "$ref" in described:
            described = self.components["responses"][described["$ref"].rsplit("/", 1)[1]]
        content = described.get("content", {}).get("application/json")
        if content is None:
            return (
                [f"status {status} has no body"]
                if body is not None and status < 300 and not described.get("content")
                else []
            )
        return self._errors((method, path, str(status)), content["schema"], body)

    def _errors(self, key: tuple[str, str, str], schema: Any, value: Any) -> list[str]:
        if key not in self._validators:
            self._validators[key] = jsonschema_rs.Draft202012Validator(
                _plain(schema), registry=self._registry, mask="the value"
            )
        validator = self._validators[key]
        if validator.is_valid(value):
            return []
        return [
            f"{'/'.join(str(part) for part in error.instance_path) or 'body'}: {error.message[:300]}"
            for error in validator.iter_errors(value)
        ][:10]

    def _parameters(self, method: str, path: str, operation: Any, query: Mapping[str, str]) -> list[str]:
        key = (method, path)
        if key not in self._query:
            named = [self._parameter(item) for item in operation.get("parameters", [])]
            self._query[key] = {item["name"]: item["schema"] for item in named if item.get("in") == "query"}
        problems = []
        for name, value in query.items():
            schema = self._query[key].get(name)
            if schema is None:
                continue  # GitHub ignores what it does not know
            if schema.get("type") == "integer" and not re.fullmatch(r"-?\d+", value):
                problems.append(f"{name}: {value!r} is not an integer")
            elif "enum" in schema and value not in map(str, schema["enum"]):
                problems.append(f"{name}: {value!r} is not one of {', '.join(map(str, schema['enum']))}")
        return problems

    def _parameter(self, item: dict[str, Any]) -> dict[str, Any]:
        if "$ref" in item:
            found: dict[str, Any] = self.components["parameters"][item["$ref"].rsplit("/", 1)[1]]
            return found
        return item


def _plain(schema: Any) -> Any:
    """An OpenAPI 3.0 schema as JSON Schema: `nullable` said by the type, references made absolute."""
    if isinstance(schema, list):
        return [_plain(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    plain = {
        key: _plain(value)
        for key, value in schema.items()
        if key not in ("nullable", "example", "examples", "discriminator", "deprecated") and not key.startswith("x-")
    }
    if isinstance(plain.get("$ref"), str) and plain["$ref"].startswith("#"):
        plain["$ref"] = BASE + plain["$ref"]
    if schema.get("nullable") is True:
        return {"anyOf": [plain, {"type": "null"}]}
    return plain


@cache
def description() -> Description:
    """The description that comes with the sandbox."""
    return Description(files("bot.sandbox").joinpath("data/github-api.json").read_text(encoding="utf-8"))
