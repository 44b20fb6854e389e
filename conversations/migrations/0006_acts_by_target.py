"""What was done to a thing is found by its name."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("conversations", "0005_uploads")]

    operations = [
        migrations.AddIndex("auditentry", models.Index(fields=["target", "audit_id"], name="audit_log_target_idx")),
    ]
