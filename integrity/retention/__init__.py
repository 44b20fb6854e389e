"""What a workspace keeps where, and the one way in which something goes for good."""
