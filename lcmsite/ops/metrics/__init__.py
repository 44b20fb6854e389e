"""Metrics in the format of Prometheus, at `/metrics`.

Every process of `lcm up` counts its events in files of a shared directory, which are added up at each scrape
(`directory`, `exposition`). Gauges are read from the database at each scrape (`state`), so they do not depend on the
number of processes.
"""
