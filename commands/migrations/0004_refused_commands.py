from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('commands', '0003_find_commands'),
    ]

    operations = [
        migrations.AddIndex(
            model_name='command',
            index=models.Index(condition=models.Q(('state', 'logged'), models.Q(('dispatch_refusal', ''), _negated=True)), fields=['organization', '-id'], name='command_refused'),
        ),
    ]
