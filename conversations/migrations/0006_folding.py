"""Search folds more letters and marks beyond ASCII; 0007 does it."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("conversations", "0005_punctuation")]
