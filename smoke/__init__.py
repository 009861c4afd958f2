"""What a deployed stage must do on its own account: looked at from outside, with credentials and the stacks' outputs."""
