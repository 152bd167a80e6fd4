"""Recognizes the kind of data that a LUN seems to hold, for whoever is about to agree to its loss.

Rule: pure; a table of magic numbers, of what `file` would name. Unlike a signature, it is no reason not to write.
"""

from __future__ import annotations

from typing import Final

from .signatures import DeviceEnds

TEXT_LOOKED_AT: Final = 4096  # bytes
TEXT_CONTROLS: Final = frozenset(b"\b\t\n\f\r\x1b")

# (name, offset, magic), the first that matches counts. At least three bytes: random data must not look like one.
KINDS: Final[tuple[tuple[str, int, bytes], ...]] = (
    ("a tar archive", 257, b"ustar"),
    ("a zip archive or a document", 0, b"PK\x03\x04"),
    ("gzip data", 0, b"\x1f\x8b\x08"),
    ("bzip2 data", 0, b"BZh"),
    ("xz data", 0, b"\xfd7zXZ\0"),
    ("zstd data", 0, b"\x28\xb5\x2f\xfd"),
    ("lz4 data", 0, b"\x04\x22\x4d\x18"),
    ("a 7-zip archive", 0, b"7z\xbc\xaf\x27\x1c"),
    ("a rar archive", 0, b"Rar!\x1a\x07"),
    ("a cpio archive", 0, b"070701"),
    ("an ar archive or a deb package", 0, b"!<arch>\n"),
    ("an RPM package", 0, b"\xed\xab\xee\xdb"),
    ("a git pack", 0, b"PACK\0\0\0"),
    ("an SQLite database", 0, b"SQLite format 3\0"),
    ("a DuckDB database", 8, b"DUCK"),
    ("an LMDB database", 16, b"\xde\xc0\xef\xbe"),
    ("a Berkeley database", 12, b"\x62\x31\x05\x00"),
    ("a Berkeley database", 12, b"\x61\x15\x06\x00"),
    ("a gdbm database", 0, b"\xce\x9a\x57\x13"),
    ("Parquet data", 0, b"PAR1"),
    ("HDF5 data", 0, b"\x89HDF\r\n\x1a\n"),
    ("an ELF program or library", 0, b"\x7fELF"),
    ("Java classes", 0, b"\xca\xfe\xba\xbe"),
    ("a core or a vmcore dump", 0, b"KDUMP"),
    ("a PDF document", 0, b"%PDF-"),
    ("a PostScript document", 0, b"%!PS"),
    ("an office document", 0, b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"),
    ("a PNG image", 0, b"\x89PNG\r\n\x1a\n"),
    ("a JPEG image", 0, b"\xff\xd8\xff"),
    ("a GIF image", 0, b"GIF8"),
    ("a TIFF image", 0, b"II*\0"),
    ("a TIFF image", 0, b"MM\0*"),
    ("audio or video (RIFF)", 0, b"RIFF"),
    ("audio or video (Ogg)", 0, b"OggS"),
    ("video (Matroska)", 0, b"\x1aE\xdf\xa3"),
    ("audio or video (MP4)", 4, b"ftyp"),
    ("audio (FLAC)", 0, b"fLaC"),
    ("audio (MP3)", 0, b"ID3"),
    ("GnuPG data", 0, b"\x85\x01\x0c"),
    ("age encrypted data", 0, b"age-encryption.org/"),
)


def kind_of(ends: DeviceEnds) -> str:
    """The kind of data that it seems to hold; "" where nothing is known of that."""
    for name, offset, magic in KINDS:
        if ends.read(offset, len(magic)) == magic:
            return name
    if not ends.head.strip(b"\0") and not ends.tail.strip(b"\0"):
        return "zeros at both ends"
    return "text" if _is_text(ends.head[:TEXT_LOOKED_AT]) else ""


def _is_text(head: bytes) -> bool:
    """Whether it is UTF-8 without control characters; the last character may be cut, and zeros may fill the rest."""
    head = head.rstrip(b"\0")
    if not head or any(byte < 32 and byte not in TEXT_CONTROLS for byte in head):
        return False
    for cut in range(4):
        try:
            head[: len(head) - cut].decode()
        except UnicodeDecodeError:
            continue
        return True
    return False
