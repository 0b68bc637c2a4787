"""The upgrade of a forum through its installer's pages, or by its command over SSH.

A YAML file describes the pages, since XenForo is proprietary; docs/xenforo.md lists its keys.
"""
