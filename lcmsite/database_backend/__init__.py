"""Django's database backend for PostgreSQL, with LCM's own server and pool."""
