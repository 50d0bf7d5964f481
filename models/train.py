"""`python -m models.train`: the door to models/training/train.py."""

from models.training.train import main

if __name__ == "__main__":
    main()
