"""The hosts (agent programs) that LCM connects to, a module for each."""
