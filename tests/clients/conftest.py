from tests.clients.served import served_lcm

__all__ = ["served_lcm"]
