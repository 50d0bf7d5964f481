"""`python -m models.evaluate`: the door to models/training/evaluate.py."""

from models.training.evaluate import main

if __name__ == "__main__":
    main()
