"""`python -m models.export`: the door to models/training/export.py."""

from models.training.export import main

if __name__ == "__main__":
    main()
