"""Metrics in the format of Prometheus, at `/metrics`.

Two sorts of figures. Events are counted where they happen, in every process of `lcm up`, in files of one directory that
are added up when somebody asks (`counting`, `directory`). What is true at a moment is asked of the database then
(`state`), so that it is right whatever the number of processes.
"""
