from django.dispatch import Signal

# A job can be claimed, now or after a delay. sender=None, job_id: int, delay_seconds: float
job_due = Signal()

# A plan waits to be carried out, now or after a delay. sender=None, plan_id: str, delay_seconds: float
plan_due = Signal()
