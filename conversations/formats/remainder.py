"""What a row says beyond its plain form, so that the row can be given back exactly. Pure.

A converter writes the plain form of a message: the keys that our columns can say. Whatever else the row had, or had
not, is its remainder: keys to `add`, keys to `drop`, and remainders `inside` objects that both have. By construction
`restored(plain, remainder(row, plain)) == row`, whatever the converter understands and whatever it does not.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

_KEYS = {"add": dict, "drop": list, "inside": dict}


def remainder(row: Mapping[str, Any], plain: Mapping[str, Any]) -> dict[str, Any]:
    """What turns `plain` into `row`; empty if they are the same."""
    add: dict[str, Any] = {}
    inside: dict[str, Any] = {}
    for key, value in row.items():
        if key not in plain:
            add[key] = value
        elif not _same(value, plain[key]):
            if isinstance(value, dict) and isinstance(plain[key], dict):
                inside[key] = remainder(value, plain[key])
            else:
                add[key] = value
    drop = [key for key in plain if key not in row]
    return {key: value for key, value in (("add", add), ("drop", drop), ("inside", inside)) if value}


def restored(plain: Mapping[str, Any], rest: Mapping[str, Any]) -> dict[str, Any]:
    """The row whose plain form and remainder these are."""
    if not rest:
        return dict(plain)
    dropped = set(rest.get("drop", ()))
    row = {key: value for key, value in plain.items() if key not in dropped}
    for key, deeper in rest.get("inside", {}).items():
        known = row.get(key)
        row[key] = restored(known if isinstance(known, dict) else {}, deeper)
    row.update(rest.get("add", {}))
    return row


def is_remainder(value: Any) -> bool:
    """Whether this can be a remainder: metadata is the caller's, who may use the same name for something else."""
    return (
        isinstance(value, dict)
        and bool(value)
        and all(key in _KEYS and isinstance(each, _KEYS[key]) for key, each in value.items())
        and all(isinstance(key, str) for key in value.get("drop", ()))
        and all(is_remainder(each) for each in value.get("inside", {}).values())
    )


def with_note(metadata: Any, name: str, rest: Mapping[str, Any]) -> Any:
    """The metadata, with a remainder under the format's name if there is any."""
    return {**(metadata or {}), name: dict(rest)} if rest else metadata


def split_note(metadata: Any, name: str) -> tuple[Any, dict[str, Any]]:
    """The metadata without the format's remainder, and the remainder."""
    if not isinstance(metadata, Mapping) or not is_remainder(metadata.get(name)):
        return metadata, {}
    return {key: value for key, value in metadata.items() if key != name}, metadata[name]


def _same(one: Any, other: Any) -> bool:
    """Equal as JSON: unlike in Python, true is not 1, and 1 is not 1.0."""
    if type(one) is not type(other):
        return False
    if isinstance(one, str | int | None):
        return one == other
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)
