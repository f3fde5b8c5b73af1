"""Tar and zip files as tensors of bytes, by name; what is damaged, ambiguous or a bomb is refused."""

from __future__ import annotations

import tarfile

from ..nn.formats.source import Path, Source, shown
from ..nn.formats.zip_files import Archive, check_name
from ..tensor import Tensor


def tar_extract(source: Path | Tensor) -> dict[str, Tensor]:
    """The files of a tar archive by name, as bytes (uint8).

    ValueError says what of it is damaged; sparse files raise NotImplementedError.
    """
    found: dict[str, Tensor] = {}
    with Source(source, "tar") as archive_file, archive_file.damage():
        try:
            _read_tar(archive_file, found)
        except tarfile.TarError as error:
            raise ValueError(str(error)) from error
    return found


def _read_tar(source: Source, found: dict[str, Tensor]) -> None:
    place = -1
    with tarfile.open(fileobj=source.file, mode="r:") as archive:
        while (member := archive.next()) is not None:
            end = member.offset_data + member.size
            if member.offset <= place or member.size < 0 or end > source.size:
                raise ValueError(
                    f"{shown(member.name)} has bytes {member.offset_data} to {end} of {source.size}"
                )
            place = member.offset
            if member.issparse():
                raise NotImplementedError(f"{shown(member.name)} is a sparse file, which is not read")
            if member.isfile():
                check_name(member.name)
                found[member.name] = source.whole[member.offset_data : end]


def zip_extract(source: Path | Tensor) -> dict[str, Tensor]:
    """The files of a zip archive by name, as bytes (uint8); only the compressed ones are read.

    ValueError says what of it is damaged; encryption and other compression than deflate raise
    NotImplementedError.
    """
    with Source(source, "zip") as archive_file, archive_file.damage():
        archive = Archive(archive_file)
        archive.check_unpacks()
        return {name: archive.tensor(member) for name, member in archive.members.items()}
