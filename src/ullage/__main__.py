"""``python -m ullage`` is ``ullage``."""

from ullage.tools.cli import main

__all__: list[str] = []

if __name__ == "__main__":
    main()
