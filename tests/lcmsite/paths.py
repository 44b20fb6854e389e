"""Every path of the site, wherever among the lists of paths it stands."""

from __future__ import annotations

from collections.abc import Iterator

from django.urls import URLPattern, URLResolver, get_resolver


def paths_below(resolver: URLResolver | None = None, so_far: str = "") -> Iterator[tuple[str, URLPattern]]:
    """Each path, as Django's routes write it, with the last piece of it."""
    for each in (resolver or get_resolver()).url_patterns:
        path = so_far + str(each.pattern)
        if isinstance(each, URLPattern):
            yield path, each
        else:
            yield from paths_below(each, path)
