"""Back up the database and files to a directory, verified by a trial restore.

`programs` runs pg_dump and pg_restore, `manifest` describes the database's contents and the backup's files, `backups`
creates and restores backups, and `backup_leftovers` removes what killed backups leave behind.
"""
