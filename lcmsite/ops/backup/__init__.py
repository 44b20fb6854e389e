"""Backups: the database and its files in one directory, restored on trial.

`programs` finds the tools of PostgreSQL, `manifest` says what a database holds and what lies in the directory,
`backups` goes both ways, and `backup_leftovers` sweeps what killed backups leave.
"""
