"""The competing-risk floor-event protocol as a floorkit plugin."""
