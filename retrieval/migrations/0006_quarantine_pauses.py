"""Add a pause reason to map runs: their input file is quarantined."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("retrieval", "0005_rewritten_texts")]

    operations = [
        migrations.AlterField(
            model_name="maprun",
            name="pause_reason",
            field=models.TextField(
                choices=[
                    ("", ""),
                    ("person", "person"),
                    ("breaker", "breaker"),
                    ("spend", "spend"),
                    ("budget", "budget"),
                    ("quarantine", "quarantine"),
                ],
                db_default="",
                default="",
            ),
        ),
    ]
