"""The hosts that LCM connects to, a module for each."""
