"""The model of an endpoint that refuses a temperature."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("compaction", "0001_initial")]

    operations = [
        migrations.AddField(
            model_name="modelendpoint",
            name="temperature_refused_by",
            field=models.TextField(db_default="", default=""),
        ),
    ]
