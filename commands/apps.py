from django.apps import AppConfig


class CommandsConfig(AppConfig):
    name = "commands"
    verbose_name = "Commands"

    def ready(self) -> None:
        from commands import settling
        from webhooks.signals import deliveries_settled

        deliveries_settled.connect(settling.on_deliveries_settled)
