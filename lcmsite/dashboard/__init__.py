"""The dashboard: pages for people, over the same operations as other interfaces.

A page is a view and a template. `visit` authenticates the user, calls operations and shows problems; `parts` compute
what a page draws.
"""
