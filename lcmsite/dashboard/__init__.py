"""The window into LCM, for people: pages that ask the same operations as every other face, and own no rule.

A page is a view and a template. `pages` lets a person in and shows what went wrong, `asking` puts their question to the
catalogue; everything that computes where something stands in a picture is a pure function in `layout`.
"""
