"""As much of JSON schema as the plan's schema uses, for the test that example plans satisfy it."""

import re
from typing import Any

_TYPES = {"object": dict, "array": list, "string": str, "number": (int, float), "integer": int, "boolean": bool}


def violations(schema: dict[str, Any], value: Any, root: dict[str, Any], path: str = "plan") -> list[str]:
    """What of `value` does not satisfy `schema`; `root` holds the definitions."""
    known = {
        "$ref", "$defs", "$schema", "anyOf", "type", "enum", "const", "pattern", "properties", "required", "items",
        "additionalProperties", "minItems", "maxItems", "minProperties", "maxProperties", "title", "description",
        "default",
    }  # fmt: skip
    assert schema.keys() <= known, f"{schema.keys() - known} is not understood here"
    found: list[str] = []
    if "$ref" in schema:
        found += violations(root["$defs"][schema["$ref"].rpartition("/")[2]], value, root, path)
    if "anyOf" in schema:
        arms = [violations(arm, value, root, path) for arm in schema["anyOf"]]
        found += [] if any(not arm for arm in arms) else [f"{path}: none of {arms}"]
    types = schema.get("type", [])
    types = [types] if isinstance(types, str) else types
    if types and not any(_is(value, kind) for kind in types):
        return [*found, f"{path}: {value!r} is not {types}"]
    if "enum" in schema and value not in schema["enum"]:
        found.append(f"{path}: {value!r} is none of {schema['enum']}")
    if "const" in schema and value != schema["const"]:
        found.append(f"{path}: {value!r} is not {schema['const']}")
    if "pattern" in schema and isinstance(value, str) and not re.search(schema["pattern"], value):
        found.append(f"{path}: {value!r} does not match {schema['pattern']}")
    if isinstance(value, list):
        if not schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value)):
            found.append(f"{path}: {len(value)} items")
        for i, item in enumerate(value):
            found += violations(schema.get("items", {}), item, root, f"{path}[{i}]")
    if isinstance(value, dict):
        found += _mapping(schema, value, root, path)
    return found


def _is(value: Any, kind: str) -> bool:
    return isinstance(value, _TYPES[kind]) and (kind == "boolean" or not isinstance(value, bool))  # type: ignore[arg-type]


def _mapping(schema: dict[str, Any], value: dict[str, Any], root: dict[str, Any], path: str) -> list[str]:
    found = [f"{path}: {key} is missing" for key in schema.get("required", []) if key not in value]
    if not schema.get("minProperties", 0) <= len(value) <= schema.get("maxProperties", len(value)):
        found.append(f"{path}: {len(value)} keys")
    for key, item in value.items():
        rest = schema.get("additionalProperties", {})
        one = schema.get("properties", {}).get(key, rest)
        if one is False:
            found.append(f"{path}: {key} is unknown")
        elif one is not True:
            found += violations(one, item, root, f"{path}.{key}")
    return found
