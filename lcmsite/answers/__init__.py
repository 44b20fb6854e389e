"""Answers as text for a model: short, without what is empty, hashed or repeated.

Texts that were stored are given as they are; everything around them is cut to what a reader needs to go on. Records
without a form of their own get a line for each field.
"""
