"""What the broker's clock has the workers do for commands."""

from commands import settling


def sweep_ack_deadlines() -> int:
    """Time out commands whose integrator did not report in time."""
    return settling.time_out_overdue()
