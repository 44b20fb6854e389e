"""MCP tools for agents, rendered from the catalogue.

A tool's answer is a text for the model, with the REST answer as structured content beside it. Agents known to show the
model the structured content instead get the text alone. There are resources and a prompt, too. `lcm mcp` serves stdio,
a process of `lcm up` HTTP.
"""
