"""Enumerations whose members are read as fast as any attribute of a class.

Before Python 3.12 a class of `enum` looks for its members through `__getattr__`: to read one takes 100 ns,
where a global name takes 10, and planning and compiling hardly do anything as often. These classes have of
`enum.Enum` what is used here: `Class.NAME`, `Class["NAME"]`, `Class(value)`, iteration, `name` and `value`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

__all__ = ["IntMember", "Member"]

if TYPE_CHECKING:
    from enum import Enum as Member
    from enum import IntEnum as IntMember
else:

    class _Members(type):
        """The class of such classes: each name in capitals is a member, a second one of a value another name
        of the first.
        """

        def __new__(meta, name: str, bases: tuple[type, ...], body: dict[str, Any]) -> _Members:
            values = {key: value for key, value in body.items() if key.isupper()}
            made = super().__new__(meta, name, bases, {k: v for k, v in body.items() if k not in values})
            by_value: dict[Any, Any] = {}
            members: dict[str, Any] = {}
            for key, value in values.items():
                member = by_value.get(value)
                if member is None:
                    member = by_value[value] = made.__new__(made, value)
                    member.name, member.value = key, value
                members[key] = member
                type.__setattr__(made, key, member)
            made.__members__, made._by_value = members, by_value
            return made

        def __call__(cls, value: Any) -> Any:
            if type(value) is cls:
                return value
            try:
                return cls._by_value[value]
            except (KeyError, TypeError):
                raise ValueError(f"{value!r} is not a valid {cls.__qualname__}") from None

        def __setattr__(cls, name: str, value: Any) -> None:
            if name in cls.__dict__.get("__members__", ()):
                raise AttributeError(f"{cls.__name__}.{name} is a member and stays what it is")
            super().__setattr__(name, value)

        def __getitem__(cls, name: str) -> Any:
            return cls.__members__[name]

        def __iter__(cls) -> Iterator[Any]:
            return iter(cls._by_value.values())

        def __len__(cls) -> int:
            return len(cls._by_value)

        def __contains__(cls, value: object) -> bool:
            return isinstance(value, cls) or value in cls._by_value

    class Member(metaclass=_Members):
        """A member has a `name` and a `value`, and is equal to itself alone."""

        def __new__(cls, value: Any) -> Member:
            return object.__new__(cls)

        def __repr__(self) -> str:
            return f"<{self}: {self.value!r}>"

        def __str__(self) -> str:
            return f"{type(self).__name__}.{self.name}"

        def __format__(self, spec: str) -> str:
            return format(str(self), spec)

        def __reduce_ex__(self, protocol: Any) -> Any:
            return type(self), (self.value,)

        def __copy__(self) -> Member:
            return self

        def __deepcopy__(self, memo: Any) -> Member:
            return self

    class IntMember(int, Member):
        """A member that is its value, an integer."""

        __new__ = int.__new__
        __repr__, __format__ = Member.__repr__, Member.__format__
