"""HTTP: the calls for programs, gradio_client and MCP, the checks of every request, and static assets."""
