"""MCP tools for agents, rendered from the catalogue.

A tool's answer is the REST answer: as structured content, and as the same JSON in a text. Resources and one prompt
stand beside the tools. Over stdio it is `lcm mcp`; over HTTP, a process of `lcm up`.
"""
