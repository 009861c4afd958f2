"""What is asked of an account before something is deployed to it."""
