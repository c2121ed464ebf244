"""How fast the engine is, and what makes it slower: ``python -m tests.benchmarks`` (``make bench``).

Real parts on one machine: a throw-away PostgreSQL that syncs to disk, pools started as in production
(``manage.py cluster``), the web server of the Procfile, a receiver in a process of its own. A shared
machine is noisy, so what counts are ratios of things measured in turns in the same run.
"""
