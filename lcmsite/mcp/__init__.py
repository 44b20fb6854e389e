"""MCP tools for agents, rendered from the catalogue.

A tool result is a text for the model, with the REST response as structured content beside it. Some agents are known to
show the model the structured content instead of the text; they get only the text. There are also resources and a
prompt. `lcm mcp` serves MCP over standard input and output, a process of `lcm up` over HTTP.
"""
