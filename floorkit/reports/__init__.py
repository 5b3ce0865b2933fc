"""What people look at: terminal, HTML page, exports. Everything is rendered from results and sections."""
