"""What goes wrong with a request, as OpenAI's protocol says it: a status and a JSON body."""

from __future__ import annotations

from typing import Any


class ApiError(Exception):
    """An answer that is an error.

    status   the HTTP status                     param   the field of the request that is wrong, if one is
    message  what is wrong, for a person         code    the same for a program, or None
    """

    def __init__(
        self, status: int, message: str, param: str | None = None, code: str | None = None, **headers: str
    ) -> None:
        super().__init__(message)
        self.status, self.message, self.param, self.code = status, message, param, code
        #: HTTP headers: `retry_after="1"` is `Retry-After: 1`.
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}

    @property
    def kind(self) -> str:
        """OpenAI's `type` of an error."""
        if self.status == 429:
            return "rate_limit_error"
        return "server_error" if self.status >= 500 else "invalid_request_error"

    def body(self) -> dict[str, Any]:
        """The error as the JSON object that clients know."""
        error = {"message": self.message, "type": self.kind, "param": self.param, "code": self.code}
        return {"error": error}
