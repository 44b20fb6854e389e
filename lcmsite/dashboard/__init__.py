"""The dashboard: pages for people, over the same operations as every other face.

A page is a view and a template. `page` logs a person in, calls operations and shows problems; `parts` and
`trust/differences` compute what a page draws.
"""
