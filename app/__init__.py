"""Two ways into Tracejury: a browser and a command."""

import logging

# Outside of Streamlit's runtime (a command, a server that starts) its caches are in memory: no news to anybody.
logging.getLogger("streamlit.runtime.caching.cache_data_api").addFilter(lambda record: False)
