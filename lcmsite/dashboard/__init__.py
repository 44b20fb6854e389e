"""The dashboard: pages for people, over the same operations as every other face.

A page is a view and a template. `visit` logs a person in, calls operations and shows problems; `parts` compute what a
page draws.
"""
