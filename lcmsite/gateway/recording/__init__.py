"""What passes through the gateway becomes messages, once each, in order, on their branch."""
