"""How strong the tests are: small changes of the code, and the tests that should notice them."""
