"""`python -m bot.cli`: the same as `graft`."""

from bot.cli import main

main()
