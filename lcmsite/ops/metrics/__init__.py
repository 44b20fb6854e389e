"""Metrics in the format of Prometheus, at `/metrics`.

Events are counted where they happen, in every process of `lcm up`, in files of one directory that are added up at a
scrape (`directory`, `exposition`). Gauges are read from the database then (`state`), so they are right whatever the
number of processes.
"""
