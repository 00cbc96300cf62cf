"""From plans, events and outcomes to what a person or a program reads. Pure, but for the terminal of
live.py.
"""
