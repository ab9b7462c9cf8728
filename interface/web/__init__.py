"""Shared by the tabs: theme, header and scripts. `core` holds pure functions, `ui` elements, `net` requests."""
