"""Shared by the tabs: theme, header, layout, scripts (`core`: pure functions, `ui`: elements, `net`: requests)."""
