"""Streamlit's server with connections that end when nothing moves: `python -m tracejury.app.server run FILE ...`.

The arguments are those of `streamlit`. Processes that it starts import this module anew, therefore nothing heavy.
"""


def main() -> None:
    """Run the command of Streamlit; uvicorn finds `connections.Connection` where it looks for HTTP."""
    from streamlit.web.cli import main as streamlit
    from uvicorn.config import HTTP_PROTOCOLS

    HTTP_PROTOCOLS["auto"] = "tracejury.app.connections:Connection"
    streamlit(prog_name="streamlit")


if __name__ == "__main__":
    main()
