#!/usr/bin/env python3
"""Puts python/lacuna and liblacuna.so into dist/lacuna-VERSION-py3-none-PLATFORM.whl, with the standard library alone.

usage: make_wheel.py LIBRARY [DIRECTORY]     the same inputs give the same bytes
"""
import base64
import hashlib
import pathlib
import re
import subprocess
import sys
import tempfile
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
METADATA = """Metadata-Version: 2.1
Name: lacuna
Version: {version}
Summary: Tags for items whose views and labels are partly missing
License: {licence}
Requires-Python: >=3.9
Requires-Dist: numpy>=1.19
Classifier: Operating System :: POSIX :: Linux
Classifier: Programming Language :: Python :: 3
Description-Content-Type: text/markdown

{description}"""
WHEEL = """Wheel-Version: 1.0
Generator: lacuna
Root-Is-Purelib: false
Tag: {tag}
"""


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def platform(library):
    """By the newest symbol of the C library that the library asks for."""
    versions = re.findall(r"GLIBC_(\d+)\.(\d+)", output("readelf", "--version-info", "--wide", str(library)))
    newest = max((int(major), int(minor)) for major, minor in versions)
    return "manylinux_{}_{}_x86_64".format(*max(newest, (2, 17)))


def main():
    library = pathlib.Path(sys.argv[1])
    target = pathlib.Path(sys.argv[2] if len(sys.argv) > 2 else ROOT / "dist")
    version = re.search(r"project\(Lacuna VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text()).group(1)
    licence = (ROOT / "LICENSE").read_text().strip().splitlines()[0]
    tag = f"py3-none-{platform(library)}"
    files = {f"lacuna/{path.name}": path.read_bytes() for path in sorted((ROOT / "python/lacuna").iterdir())
             if path.suffix == ".py" or path.name == "py.typed"}
    files["lacuna/liblacuna.so"] = library.read_bytes()
    info = f"lacuna-{version}.dist-info"
    files[f"{info}/METADATA"] = METADATA.format(version=version, licence=licence,
                                                description=(ROOT / "docs/python.md").read_text()).encode()
    files[f"{info}/WHEEL"] = WHEEL.format(tag=tag).encode()
    files[f"{info}/LICENSE"] = (ROOT / "LICENSE").read_bytes()
    files[f"{info}/copyright"] = (ROOT / "packaging/copyright").read_bytes()
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([ROOT / "tools/licences.sh", folder], check=True)
        for path in sorted(pathlib.Path(folder).iterdir()):
            files[f"{info}/licences/{path.name}"] = path.read_bytes()
    record = ""
    for name, content in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        record += f"{name},sha256={digest},{len(content)}\n"
    files[f"{info}/RECORD"] = f"{record}{info}/RECORD,,\n".encode()
    target.mkdir(parents=True, exist_ok=True)
    for old in target.glob("lacuna-*.whl"):
        old.unlink()
    path = target / f"lacuna-{version}-{tag}.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as wheel:
        for name, content in files.items():
            entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (0o755 if name.endswith(".so") else 0o644) << 16
            wheel.writestr(entry, content)
    print(path)


if __name__ == "__main__":
    main()
