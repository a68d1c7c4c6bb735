"""data/ → site/. Nothing here knows of hosts or of the network."""
