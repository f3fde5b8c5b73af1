"""Functions that are called around the call of a module: `register_forward_hook` and its kin."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .state import Hidden

#: The attributes of a module in which its hooks are.
BEFORE, AFTER = "_forward_pre_hooks", "_forward_hooks"


class Hook:
    """A function, and how it is called."""

    def __init__(self, function: Callable[..., Any], with_kwargs: bool, always: bool) -> None:
        self.function, self.with_kwargs, self.always = function, with_kwargs, always


class Hooks(list[Hook], Hidden):
    """The hooks of a module, in the order they are called: no part of its state."""


class RemovableHandle:
    """What registering a hook gives: `remove()` takes the hook away; so does the end of a `with` block."""

    def __init__(self, hooks: Hooks, hook: Hook) -> None:
        self._hooks, self._hook = hooks, hook

    def remove(self) -> None:
        """Take the hook away; a second time changes nothing."""
        self._hooks[:] = [hook for hook in self._hooks if hook is not self._hook]

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *error: object) -> None:
        self.remove()


def registered(
    module: Any, where: str, hook: Callable[..., Any], prepend: bool, **how: bool
) -> RemovableHandle:
    """Let a module have a hook."""
    if not callable(hook):
        raise TypeError(f"a hook must be a function, not {hook!r}")
    hooks = vars(module).get(where)
    if hooks is None:
        hooks = Hooks()
        setattr(module, where, hooks)
    made = Hook(hook, how["with_kwargs"], how.get("always", False))
    hooks.insert(0 if prepend else len(hooks), made)
    return RemovableHandle(hooks, made)


def call_with_hooks(call: Callable[..., Any], module: Any, /, *args: Any, **kwargs: Any) -> Any:
    """The call of a module, with what its hooks make of the arguments before, and of the result after."""
    called: set[int] = set()
    try:
        for hook in tuple(vars(module).get(BEFORE, ())):
            args, kwargs = _changed(hook, module, args, kwargs)
        result = call(module, *args, **kwargs)
        for hook in tuple(vars(module).get(AFTER, ())):
            called.add(id(hook))
            result = _answered(hook, module, args, kwargs, result)
    except BaseException:
        for hook in tuple(vars(module).get(AFTER, ())):
            if hook.always and id(hook) not in called:
                _answered(hook, module, args, kwargs, None)
        raise
    return result


def _changed(
    hook: Hook, module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    if hook.with_kwargs:
        both = hook.function(module, args, kwargs)
        if both is None:
            return args, kwargs
        if not isinstance(both, tuple) or len(both) != 2:
            raise RuntimeError(f"a forward pre-hook with kwargs gives None or (args, kwargs), not {both!r}")
        return both
    given = hook.function(module, args)
    if given is None:
        return args, kwargs
    return (given if isinstance(given, tuple) else (given,)), kwargs


def _answered(hook: Hook, module: Any, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> Any:
    given = (module, args, kwargs, result) if hook.with_kwargs else (module, args, result)
    answer = hook.function(*given)
    return result if answer is None else answer
