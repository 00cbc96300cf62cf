"""Turns plans, events and outcomes into output for people and programs. Pure, except for the terminal of
live.py.
"""
