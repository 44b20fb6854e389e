"""The table of Django's database cache, which `createcachetable` would make: counts of requests, for a minute each."""

from django.db import migrations

FORWARDS = """
CREATE TABLE lcm_cache (
    cache_key varchar(255) NOT NULL PRIMARY KEY, value text NOT NULL, expires timestamptz NOT NULL
);
CREATE INDEX lcm_cache_expires ON lcm_cache (expires);
"""


class Migration(migrations.Migration):
    dependencies = [("lcmsite", "0004_row_seals")]
    operations = [migrations.RunSQL(FORWARDS, "DROP TABLE lcm_cache;")]
