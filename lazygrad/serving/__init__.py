"""Language models for several people at once: an engine that computes many answers together, and a server
that speaks OpenAI's protocol.

A client's request comes in as JSON and is checked (`requests.py`), waits its turn and is computed together
with others (`engine.py`), and goes out as JSON or as a stream of events (`replies.py`, `app.py`).
`server.py` is the HTTP server around it. Nothing here computes tensors: that is models/'s.
"""
