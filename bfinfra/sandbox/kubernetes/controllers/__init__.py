"""A cluster's controllers. Each looks at an object and does the next step; its only memory is the store."""
