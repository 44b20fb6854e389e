from django.dispatch import Signal

# A scan can be claimed, now or after a delay. sender=None, scan_id: int, delay_seconds: float
scan_due = Signal()
