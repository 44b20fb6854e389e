"""Search separates words at NUL and punctuation beyond ASCII; 0007 does it."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("conversations", "0004_erased_keys")]
