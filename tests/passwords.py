"""Passwords for tests: hashed as the site does it, once instead of a million times."""

from __future__ import annotations

from django.contrib.auth.hashers import PBKDF2PasswordHasher


class QuickHasher(PBKDF2PasswordHasher):
    """Says with each hash how it was made, so that a site's own processes can check it."""

    iterations = 1
