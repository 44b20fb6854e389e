"""Passwords for tests: hashed with the site's algorithm, but with one iteration."""

from __future__ import annotations

from django.contrib.auth.hashers import PBKDF2PasswordHasher


class QuickHasher(PBKDF2PasswordHasher):
    """Each hash names its algorithm and iterations, so a site's process can check it."""

    iterations = 1
