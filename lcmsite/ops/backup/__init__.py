"""Backups: everything that LCM keeps, in one directory, proved by restoring it before it is called a backup.

`programs` finds the tools of PostgreSQL, `manifest` says what lies in the directory, `digest` tells two databases that
hold the same from two that do not, `making` and `restoring` are the two ways.
"""
