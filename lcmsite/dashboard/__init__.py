"""The dashboard: pages for people, which call the operations of the catalogue.

A page is a view and a template. `visit` authenticates the user, calls operations and shows problems; `parts` compute
the charts and texts of pages.
"""
