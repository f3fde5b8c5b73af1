"""Vector code (form 5) becomes what the target has (form 6): `legalize` lists the steps."""
