"""Files made to do harm: each is refused with what is wrong, and nothing outside of the result changes."""

from __future__ import annotations

import io
import struct
import tarfile
import time

import pytest

from lazygrad import Tensor, dtypes
from lazygrad.compat.files import tar_extract, torch_load, zip_extract
from lazygrad.nn.formats import zip_files
from tests.fuzz.formats import (
    ORDERED,
    TENSOR,
    Member,
    call,
    deflated,
    mapping,
    name,
    number,
    numbers,
    storage,
    tensor,
    text,
    together,
    torch_file,
    zip_file,
)
from tests.helpers import needs

FLOAT = name("torch", "FloatStorage")


def slots(**found):
    """What BUILD sets as attributes: (None, a dict)."""
    return b"N" + mapping(*[part for key, value in found.items() for part in (text(key), value)]) + b"\x86"


#: What a pickle tries: (program, error, message).
PROGRAMS = {
    "the size of a type": (FLOAT + slots(itemsize=number(1)) + b"b0" + tensor(), ValueError, "BUILD needs"),
    "the name of a type": (FLOAT + slots(name=text("evil;")) + b"b0" + tensor(), ValueError, "BUILD needs"),
    "attributes of a class": (
        name("collections", "OrderedDict") + mapping(text("x"), number(1)) + b"b",
        ValueError,
        "BUILD needs an OrderedDict, not a Name",
    ),
    "attributes of a tensor": (tensor() + slots(_uop=number(1)) + b"b", ValueError, "not a Tensor"),
    "methods of a dict": (ORDERED + mapping(text("items"), number(1)) + b"b", NotImplementedError, "state"),
    "elements of a tensor": (tensor() + number(0) + number(7) + b"s", ValueError, "SETITEM"),
    "items of a list that is none": (tensor() + number(0) + b"a", ValueError, "APPEND needs a list"),
    "a program": (name("os", "system") + together(text("exit")) + b"R", NotImplementedError, r"os\.system"),
    "a stack program": (text("os") + text("system") + b"\x93)R", NotImplementedError, r"os\.system"),
    "a name on two lines": (name("os\\\x1b[2J", "x"), NotImplementedError, r"holds a 'os\\\\\\x1b\[2J\.x'"),
    "an attribute": (
        name("torch", "FloatStorage.vec") + together(number(4)) + b"R",
        NotImplementedError,
        "vec",
    ),
    "a class as it is": (FLOAT, NotImplementedError, "holds a? ?torch.FloatStorage"),
    "memory as it is": (storage(), NotImplementedError, "holds memory that is no tensor"),
    "a class called as a function": (FLOAT + b")R", ValueError, "is not called"),
    "an instance": (b"(icollections\nOrderedDict\n", NotImplementedError, "opcode b'i'"),
    "an object": (b"(" + name("torch", "Size") + b"o", NotImplementedError, "opcode b'o'"),
    "a new object": (name("torch", "Size") + b")\x81", NotImplementedError, r"opcode b'\\x81'"),
    "an extension": (b"\x82\1", NotImplementedError, r"opcode b'\\x82'"),
    "an id in words": (b"Pstorage\n", NotImplementedError, "opcode b'P'"),
    "an object twice": (b"N2", NotImplementedError, "opcode b'2'"),
    "a buffer from outside": (b"\x97", NotImplementedError, r"opcode b'\\x97'"),
    "a later protocol": (b"\x80\x63N", NotImplementedError, "protocol 99"),
    "a key nested deeply": (b"})" + b"\x85" * 100_000 + b"Ns", NotImplementedError, "a tuple as a key"),
    "keys of one hash": (
        mapping(*[number(n * ((1 << 61) - 1)) + b"N" for n in range(10_000)]),
        NotImplementedError,
        "an integer of 61 bits or more as a key",
    ),
    "many tuples as keys": (
        mapping(*[number(n) + b"\x85N" for n in range(10_001)]),
        NotImplementedError,
        "more than 10000 tuples",
    ),
    "a tensor as a key": (b"}" + tensor() + b"Ns", NotImplementedError, "a Tensor as a key"),
    "nothing": (b"", ValueError, "the stack is empty"),
    "too little": (b"0", ValueError, "the stack is empty"),
    "too much": (b"NN", ValueError, "more than one object"),
    "below a mark": (b"N(\x85", ValueError, "the stack is empty"),
    "no mark": (b"Nt", ValueError, "there is no mark"),
    "no such object": (b"h\5", ValueError, "there is no object 5"),
    "a text of 3 GB": (b"B\xff\xff\xff\xbf", ValueError, "bytes too early"),
    "a frame of 2**64 bytes": (b"\x95" + b"\xff" * 8 + b"N", ValueError, "a frame of"),
    "no UTF-8": (b"X\1\0\0\0\xff", ValueError, "a text is not UTF-8"),
    "an odd dict": (b"}(Nu", ValueError, "a key has no value"),
    "arguments of another kind": (name("torch", "Size") + b"NR", ValueError, "a tuple of arguments"),
    "arguments too many": (call(name("torch", "Size"), b")", b")"), ValueError, "does not take these"),
    "a size of text": (
        call(name("torch", "Size"), together(text("a"))),
        ValueError,
        "something other than sizes",
    ),
    "a size of a tensor": (call(name("torch", "Size"), tensor()), ValueError, "something other than sizes"),
    "a parameter of a text": (
        call(name("torch._utils", "_rebuild_parameter"), text("a"), b"\x88", ORDERED),
        ValueError,
        "not made of a tensor",
    ),
    "bytes of another codec": (
        call(name("_codecs", "encode"), text("a"), text("rot13")),
        ValueError,
        "not written as a pickler",
    ),
    "an id that is a number": (number(3) + b"Q", ValueError, "does not describe a storage"),
    "a storage that is missing": (tensor(storage("9")), ValueError, "no storage 9 in the archive"),
    "a storage larger than its file": (tensor(storage(size=7)), ValueError, "7 elements of .*has 24 bytes"),
    "a storage of a negative size": (tensor(storage(size=-1)), ValueError, "does not describe a storage"),
    "a tensor of a text": (tensor(text("a")), ValueError, "not made of a storage"),
    "a shape of text": (
        call(TENSOR, storage(), number(0), text("abc"), numbers(1), b"\x89", ORDERED),
        ValueError,
        "not sizes",
    ),
    "a shape beyond the storage": (tensor(shape=(7,), strides=(1,)), ValueError, "elements 0 to 6 of 6"),
    "an offset beyond the storage": (tensor(offset=1), ValueError, "elements 1 to 6 of 6"),
    "strides beyond the storage": (tensor(shape=(2,), strides=(6,)), ValueError, "elements 0 to 6 of 6"),
    "a negative stride": (tensor(offset=5, shape=(6,), strides=(-1,)), ValueError, "not sizes"),
    "a negative offset": (tensor(offset=-1, shape=(1,), strides=(1,)), ValueError, "not sizes"),
    "a negative size": (tensor(shape=(-2, -3)), ValueError, "not sizes"),
    "a size of 70 bits": (tensor(shape=(1 << 70,), strides=(0,)), ValueError, "not sizes"),
    "2**80 elements": (tensor(shape=(1 << 40, 1 << 40), strides=(0, 0)), ValueError, "too many elements"),
    "65 axes": (tensor(shape=(1,) * 65, strides=(1,) * 65), ValueError, "65 axes"),
    "axes without strides": (tensor(shape=(1, 1), strides=(1,)), ValueError, "2 axes and 1 strides"),
}


@pytest.mark.parametrize("attempt", PROGRAMS)
def test_a_hostile_pickle(tmp_path, attempt):
    program, error, message = PROGRAMS[attempt]
    path, contents = tmp_path / "x.pth", torch_file(program)
    path.write_bytes(contents)
    before = [(each, each.itemsize, each.name, each.fmt) for each in dtypes.all]
    begin = time.process_time()
    with pytest.raises(error, match=rf"x\.pth.*{message}.*byte \d+ of the pickle"):
        torch_load(path)
    assert time.process_time() - begin < 10
    assert [(each, each.itemsize, each.name, each.fmt) for each in dtypes.all] == before
    assert path.read_bytes() == contents


def test_a_name_that_is_a_place_of_the_memo_takes_no_room():
    """Python's reader makes a table as long as the largest number in it."""
    assert torch_load(Tensor(torch_file(b"\x88r\xff\xff\xff\xff0j\xff\xff\xff\xff"))) is True


def test_what_is_shared_and_what_is_in_itself():
    found = torch_load(Tensor(torch_file(b"]q\0(h\0h\0e")))
    assert found[0] is found
    deep = torch_load(Tensor(torch_file(b"N" + b"\x85" * 100_000)))
    assert type(deep) is tuple


def member(**fields):
    """The file of a tensor, whose memory is a member with these fields."""
    data = struct.pack("<6f", *range(6))
    return torch_file(tensor(), {}, (Member("archive/data/0", data, **fields),))


PICKLE = b"\x80\2" + tensor() + b"."
#: What an archive tries: (bytes, error, message).
ARCHIVES = {
    "two of a name": (torch_file(tensor(), others=(Member("archive/data/0"),)), ValueError, "two members"),
    "two pickles": (
        torch_file(tensor(), others=(Member("b/data.pkl", b"N."),)),
        ValueError,
        "has 2 data.pkl",
    ),
    "no pickle": (zip_file([Member("archive/data/0", bytes(24))]), ValueError, "no data.pkl"),
    "big-endian": (
        zip_file(
            [Member("a/data.pkl", PICKLE), Member("a/data/0", bytes(24)), Member("a/byteorder", b"big")]
        ),
        NotImplementedError,
        "not little-endian",
    ),
    "longer than the file": (member(packed=1 << 20, unpacked=1 << 20), ValueError, "has bytes .* of "),
    "of two sizes": (member(unpacked=1 << 20), ValueError, "has two sizes"),
    "behind the file": (member(offset=1 << 31), ValueError, "should begin at byte 2147483648"),
    "another's place": (member(offset=0), ValueError, "something other than"),
    "no member": (member(signature=b"PK\0\0"), ValueError, "something other than"),
    "two names": (member(local_name="archive/data/1"), ValueError, "something other than"),
    "two methods": (member(local_method=8), ValueError, "something other than"),
    "encrypted": (member(flags=0x801), NotImplementedError, "is encrypted"),
    "compressed": (member(method=8), NotImplementedError, "is compressed"),
    "compressed otherwise": (member(method=12), NotImplementedError, "compression 12"),
    "a way out": (torch_file(tensor(), others=(Member("../x"),)), ValueError, "leads out of a folder"),
    "an absolute name": (torch_file(tensor(), others=(Member("/etc/x"),)), ValueError, "leads out"),
    "a name with a zero": (torch_file(tensor(), others=(Member("x\0y"),)), ValueError, "leads out"),
    "a directory elsewhere": (torch_file(tensor(), directory=7), ValueError, "damaged"),
    "cut off": (torch_file(tensor())[40:], ValueError, "damaged"),
}


@pytest.mark.parametrize("attempt", ARCHIVES)
def test_a_hostile_archive(tmp_path, attempt):
    contents, error, message = ARCHIVES[attempt]
    path = tmp_path / "x.pth"
    path.write_bytes(contents)
    with pytest.raises(error, match=rf"x\.pth.*{message}"):
        torch_load(path)


def test_what_unpacks_to_too_much_is_not_unpacked(monkeypatch):
    monkeypatch.setattr(zip_files, "MOST_INFLATED", 1 << 20)
    bomb = zip_file([Member(f"{n}", bytes(1 << 19), 8) for n in range(3)])
    with pytest.raises(ValueError, match="unpack to 1572864: unpack it with another program"):
        zip_extract(Tensor(bomb))


def test_damaged_compression_is_an_error():
    for fields in (dict(raw=b"\xff" * 9), dict(crc=5), dict(raw=deflated(b"abc"))):
        with pytest.raises(ValueError, match="the tensor is not a zip file, or is damaged: "):
            zip_extract(Tensor(zip_file([Member("a", bytes(100), 8, **fields)])))


def tar_of(*members):
    kept = io.BytesIO()
    with tarfile.open(fileobj=kept, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for title, data in members:
            info = tarfile.TarInfo(title)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return kept.getvalue()


def with_size(contents, size):
    """A tar file whose first member has another size: a number of 12 bytes, the first marked."""
    field = (size & ((1 << 95) - 1)).to_bytes(12, "big")
    header = bytearray(contents[:512])
    header[124:136] = bytes([0xFF if size < 0 else 0x80]) + (b"\xff" * 11 if size < 0 else field[1:])
    if size < 0:
        header[125:136] = (size & ((1 << 88) - 1)).to_bytes(11, "big")
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    return bytes(header) + contents[512:]


@pytest.mark.parametrize("size", [-512, -1024, 1 << 40, 100_000])
def test_a_tar_file_that_leads_elsewhere(size):
    """A negative size leads Python's reader back to where it was, for ever."""
    with pytest.raises(ValueError, match="the tensor is not a tar file, or is damaged: "):
        tar_extract(Tensor(with_size(tar_of(("a", b"xyz"), ("b", b"z")), size)))


def test_a_tar_file_with_a_way_out():
    with pytest.raises(ValueError, match=r"the name '\.\./a' leads out of a folder"):
        tar_extract(Tensor(tar_of(("../a", b"xyz"))))
    with pytest.raises(ValueError, match="the tensor is not a tar file"):
        tar_extract(Tensor(b"no tar file" * 100))


def test_a_tensor_that_is_no_file():
    with pytest.raises(TypeError, match=r"a file as a tensor must be bytes, not dtypes\.float of shape"):
        zip_extract(Tensor([1.0]))


@needs("torch")
@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_every_protocol_of_torch(tmp_path, protocol):
    import torch

    model = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3))
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.ones(2, 2)).sum().backward()
    optimizer.step()
    kept = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "raw": b"\0\xff", "n": 1 << 40}
    kept |= {"texts": ["é", ""], "size": torch.Size((2, 3)), "deep": {"a": (1.5, None, -3, True, [()])}}
    torch.save(kept, tmp_path / "x.pth", pickle_protocol=protocol)
    found = torch_load(tmp_path / "x.pth")
    for key in ("raw", "n", "texts", "size", "deep"):
        assert found[key] == kept[key], key
    assert found["model"]._metadata == kept["model"]._metadata
    assert list(found["model"]) == list(kept["model"])
    for key, weight in kept["model"].items():
        assert found["model"][key].tolist() == weight.tolist(), key
    assert found["optimizer"]["state"][0]["exp_avg"].tolist() == (
        kept["optimizer"]["state"][0]["exp_avg"].tolist()
    )
    assert found["optimizer"]["param_groups"] == kept["optimizer"]["param_groups"]
