"""What is loaded into a suite's own processes; the folder goes on their PYTHONPATH, nothing else of Graft's does."""
