"""MCP tools for agents, rendered from the catalogue.

A tool's answer is a text for the model, and the REST answer as structured content beside it. Agents that show a model
the structured content in place of the text are given the text alone. Resources and one prompt come with the tools. Over
stdio it is `lcm mcp`; over HTTP, a process of `lcm up`.
"""
