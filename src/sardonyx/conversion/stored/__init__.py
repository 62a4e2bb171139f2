"""What the readers of stored networks share: files of frameworks that are not run here."""
